//! The fill value: put it everywhere, and see whether it is everywhere.

/// Fill memory with one element, again and again.
pub fn fill(memory: &mut [u8], element: &[u8]) {
    let Some((first, rest)) = element.split_first() else {
        return;
    };
    if rest.iter().all(|byte| byte == first) {
        memory.fill(*first);
        return;
    }
    // Copying what is filled already doubles it each time.
    let mut filled = element.len().min(memory.len());
    memory[..filled].copy_from_slice(&element[..filled]);
    while filled < memory.len() {
        let more = filled.min(memory.len() - filled);
        memory.copy_within(..more, filled);
        filled += more;
    }
}

/// Whether memory holds nothing but one element.
///
/// With a mask, bits that are 0 in it do not count (padding between fields).
#[must_use]
pub fn is_filled(memory: &[u8], element: &[u8], mask: Option<&[u8]>) -> bool {
    let size = element.len();
    if size == 0 || memory.len() < size {
        return true;
    }
    match mask {
        // The first element is the value, and each other element equals the one before it.
        None => memory[..size] == *element && memory[size..] == memory[..memory.len() - size],
        Some(mask) => memory.chunks_exact(size).all(|found| {
            found.iter().zip(element).zip(mask).all(|((found, wanted), mask)| (found ^ wanted) & mask == 0)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{fill, is_filled};

    #[test]
    fn what_was_filled_is_filled() {
        for element in [&[0_u8][..], &[1, 2], &[7, 7, 7], &[0, 0, 0, 128]] {
            let mut memory = vec![9; element.len() * 33];
            fill(&mut memory, element);
            assert!(is_filled(&memory, element, None));
            for byte in 0..memory.len() {
                memory[byte] ^= 1;
                assert!(!is_filled(&memory, element, None));
                memory[byte] ^= 1;
            }
        }
    }

    #[test]
    fn padding_does_not_count() {
        let memory = [1, 77, 2, 1, 88, 2];
        assert!(is_filled(&memory, &[1, 0, 2], Some(&[255, 0, 255])));
        assert!(!is_filled(&memory, &[1, 0, 2], None));
    }
}
