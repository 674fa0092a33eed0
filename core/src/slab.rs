//! Slots by number in chunks that never move: growing copies nothing, and an unused chunk costs nothing.
//! Owns placement only; a slot's number may be given out again once it is free.

const CHUNK: usize = 128;

/// Values by dense number. `insert` finds the number, `insert_at` takes one that somebody else gave out.
#[derive(Debug)]
pub struct Slab<T> {
    chunks: Vec<Box<[Option<T>]>>,
    free: Vec<u32>,
    next: u32,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), next: 0, len: 0 }
    }
}

impl<T> Slab<T> {
    pub fn insert(&mut self, value: T) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.insert_at(index, value);
        index
    }

    /// Puts `value` at `index`, which must be free; what stood there is handed back.
    pub fn insert_at(&mut self, index: u32, value: T) -> Option<T> {
        let (chunk, slot) = split(index);
        while self.chunks.len() <= chunk {
            self.chunks.push((0..CHUNK).map(|_| None).collect());
        }
        let old = self.chunks.get_mut(chunk)?.get_mut(slot)?.replace(value);
        self.len += usize::from(old.is_none());
        old
    }

    /// Takes the value out; its number is given out again by `insert` (never mix `insert` and `insert_at` in one slab).
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.take(index)?;
        self.free.push(index);
        Some(value)
    }

    /// Takes the value out of a slot whose number somebody else gives out.
    pub fn take(&mut self, index: u32) -> Option<T> {
        let (chunk, slot) = split(index);
        let value = self.chunks.get_mut(chunk)?.get_mut(slot)?.take()?;
        self.len -= 1;
        Some(value)
    }

    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let (chunk, slot) = split(index);
        self.chunks.get(chunk)?.get(slot)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (chunk, slot) = split(index);
        self.chunks.get_mut(chunk)?.get_mut(slot)?.as_mut()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One past the highest number in use so far.
    pub fn end(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    /// Numbers in use, ascending, from `start` on.
    pub fn indices_from(&self, start: u32) -> impl Iterator<Item = u32> + '_ {
        (start..self.end()).filter(|&index| self.get(index).is_some())
    }
}

#[inline]
fn split(index: u32) -> (usize, usize) {
    (index as usize / CHUNK, index as usize % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_number_is_given_out_again() {
        let mut slab = Slab::default();
        let numbers: Vec<u32> = (0..300).map(|n| slab.insert(n)).collect();
        assert_eq!((slab.len(), slab.get(299)), (300, Some(&299)));
        assert_eq!(slab.remove(7), Some(7));
        assert_eq!(slab.remove(7), None);
        assert_eq!(slab.insert(9), 7);
        assert_eq!(slab.indices_from(290).collect::<Vec<_>>(), numbers[290..]);
    }

    #[test]
    fn a_slot_can_be_chosen_from_outside() {
        let mut slab = Slab::default();
        assert_eq!(slab.insert_at(1000, 'a'), None);
        assert_eq!(slab.insert_at(1000, 'b'), Some('a'));
        assert_eq!((slab.take(1000), slab.len(), slab.get(5)), (Some('b'), 0, None));
    }
}
