//! Things under way, by number.

/// Things by number, numbers used again.
pub(super) struct Shelf<T> {
    things: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }
}

impl<T> Shelf<T> {
    pub(super) fn put(&mut self, thing: T) -> usize {
        if let Some(at) = self.free.pop() {
            self.things[at] = Some(thing);
            at
        } else {
            self.things.push(Some(thing));
            self.things.len() - 1
        }
    }

    pub(super) fn take(&mut self, at: usize) -> T {
        self.free.push(at);
        self.things[at].take().expect("each number is planned once")
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.things.iter().flatten()
    }
}
