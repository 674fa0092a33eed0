//! Moves bytes: sockets, threads, timers. It decides nothing; what happens to the bytes is said by the core.
//! `driver` is the seam to the kernel, `shard` one thread's loop over a driver and a core shard, `queue` the way to and from
//! Python's thread, `engine` all of it started and stopped together: begin reading there.

mod clock;
pub mod driver;
mod engine;
mod feedback;
mod history;
mod journal;
mod lines;
mod links;
mod node_shared;
mod notes;
mod priority;
mod publications;
mod queue;
mod shard;
mod snapshots;
mod socket_output;
mod survey;
mod tls;

pub use clock::Clock;
pub use engine::{Engine, Named, Started, Stats};
pub use feedback::FeedbackJournal;
pub use godwit_journal::Checked;
pub use journal::{JournalFigures, JournalUnusable, Resumed, check_journal};
pub use node_shared::Figures;
pub use publications::Publications;
pub use survey::{Found, Question, Sort, Surveyed};
