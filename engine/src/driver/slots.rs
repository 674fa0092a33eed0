//! The dense table of sockets: numbers taken from the lowest that were freed last, each with a generation, so that what
//! still comes for a closed socket is told from what comes for its successor.

/// A table of `T`, at most `max` of them at once.
pub(super) struct Slots<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    max: u32,
}

struct Entry<T> {
    /// Counts how often the slot was freed; 24 bits of it travel through the kernel.
    generation: u32,
    value: T,
}

pub(super) const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

impl<T: Default> Slots<T> {
    pub(super) fn new(max: u32) -> Self {
        Self { entries: Vec::new(), free: Vec::new(), max }
    }

    /// A free slot's number, its value fresh.
    pub(super) fn take(&mut self) -> Option<u32> {
        if let Some(socket) = self.free.pop() {
            return Some(socket);
        }
        let socket = u32::try_from(self.entries.len()).ok().filter(|&next| next < self.max)?;
        self.entries.push(Entry { generation: 0, value: T::default() });
        Some(socket)
    }

    /// Frees a taken slot.
    pub(super) fn give(&mut self, socket: u32) {
        if let Some(entry) = self.entries.get_mut(socket as usize) {
            entry.generation = (entry.generation + 1) & GENERATION_MASK;
            entry.value = T::default();
            self.free.push(socket);
        }
    }

    pub(super) fn get(&mut self, socket: u32) -> Option<&mut T> {
        self.entries.get_mut(socket as usize).map(|entry| &mut entry.value)
    }

    /// The value, if the slot still is of that generation.
    pub(super) fn get_of(&mut self, socket: u32, generation: u32) -> Option<&mut T> {
        let entry = self.entries.get_mut(socket as usize)?;
        (entry.generation == generation).then_some(&mut entry.value)
    }

    pub(super) fn generation(&self, socket: u32) -> u32 {
        self.entries.get(socket as usize).map_or(0, |entry| entry.generation)
    }

    /// Slots taken now.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_freed_number_is_used_again_in_a_new_generation() {
        let mut slots: Slots<u8> = Slots::new(2);
        assert_eq!((slots.take(), slots.take(), slots.take()), (Some(0), Some(1), None));
        let before = slots.generation(0);
        slots.give(0);
        assert_eq!(slots.take(), Some(0));
        assert!(slots.get_of(0, before).is_none());
        assert!(slots.get_of(0, slots.generation(0)).is_some());
        assert_eq!(slots.len(), 2);
    }
}
