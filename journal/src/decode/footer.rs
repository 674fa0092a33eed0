//! What makes an IPC file of a sealed segment beside its frames: the mark in front, the footer, the mark behind. Owns telling whether they are
//! what others need to read it by; we read its frames without them.
use std::io;

use arrow_ipc::root_as_footer;

use crate::decode::frames::{FILE_MAGIC, Frame};
use crate::disk::{ReadAt, read_range};

/// What a file ends with, behind the length of its footer.
const END_MAGIC: &[u8] = b"ARROW1";
const LENGTH_BYTES: u64 = 4;
/// A footer is the schema and some bytes a batch; nothing larger is believed.
const FOOTER_MAX: u64 = 64 << 20;

/// Whether its marks are there, and a footer that names each of these frames.
pub(crate) fn is_ipc_file(file: &dyn ReadAt, frames: &[Frame]) -> io::Result<bool> {
    let start = FILE_MAGIC.len() as u64;
    let Some(end) = file.length()?.checked_sub(LENGTH_BYTES + END_MAGIC.len() as u64) else { return Ok(false) };
    if read_range(file, 0, FILE_MAGIC.len())? != FILE_MAGIC {
        return Ok(false);
    }
    let tail = read_range(file, end, LENGTH_BYTES as usize + END_MAGIC.len())?;
    let Some((length, END_MAGIC)) = tail.split_first_chunk() else { return Ok(false) };
    let length = u64::try_from(i32::from_le_bytes(*length)).unwrap_or(0);
    if length == 0 || length > FOOTER_MAX || start + length > end {
        return Ok(false);
    }
    let footer = read_range(file, end - length, length as usize)?;
    Ok(names(&footer, frames).unwrap_or(false))
}

/// None where it is no footer.
fn names(footer: &[u8], frames: &[Frame]) -> Option<bool> {
    let footer = root_as_footer(footer).ok()?;
    footer.schema()?;
    let mut blocks = footer.recordBatches()?.iter().map(|block| {
        let end = block.offset().checked_add(i64::from(block.metaDataLength()))?.checked_add(block.bodyLength())?;
        Some((u64::try_from(block.offset()).ok()?, u64::try_from(end).ok()?))
    });
    // Both in the order of the file; a frame that is bent is among the blocks alone.
    Some(frames.iter().all(|frame| blocks.any(|block| block == Some((frame.at, frame.end())))))
}
