//! The `.npy` format, as far as checkpoints need it: version 1, little-endian, C order.
//!
//! Two dozen lines instead of a crate, because those that exist bring a grammar of Python literals
//! with them.

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// Where the data of an array begins is a multiple of this.
const ALIGNMENT: usize = 64;

/// What stands before the data of an array of that type (`<f4`, `<f8`, `|u1`) and shape.
pub(super) fn header(descr: &str, shape: &[u32]) -> Vec<u8> {
    let lengths: Vec<String> = shape.iter().map(|length| format!("{length},")).collect();
    let lengths = match &lengths[..] {
        [one] => one.clone(),
        many => many.join(" ").trim_end_matches(',').to_owned(),
    };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({lengths}), }}");
    let before = MAGIC.len() + 2;
    while !(before + text.len() + 1).is_multiple_of(ALIGNMENT) {
        text.push(' ');
    }
    text.push('\n');
    let len = u16::try_from(text.len()).expect("64 lengths of ten digits fit");
    [MAGIC, &len.to_le_bytes(), text.as_bytes()].concat()
}

/// The data of an array that is to have that type and shape.
pub(super) fn data<'a>(bytes: &'a [u8], descr: &str, shape: &[u32]) -> Result<&'a [u8], String> {
    let short = || "cut short".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("not an array in version 1 of .npy")?;
    let (len, rest) = rest.split_first_chunk().ok_or_else(short)?;
    let text = rest.get(..usize::from(u16::from_le_bytes(*len))).ok_or_else(short)?;
    let data = &rest[text.len()..];
    let text = std::str::from_utf8(text).map_err(|_| "its header is not text")?;
    let value = |key: &str, end: char| {
        let start = text.find(key)? + key.len();
        let value = &text[start..];
        Some(&value[..value.find(end)?])
    };
    if value("'descr': '", '\'') != Some(descr) || value("'fortran_order': ", ',') != Some("False")
    {
        return Err(format!("not of type {descr} in C order"));
    }
    let lengths = value("'shape': (", ')').ok_or("its header names no shape")?;
    let lengths = lengths.split(',').map(str::trim).filter(|length| !length.is_empty());
    let read: Option<Vec<u32>> = lengths.map(|length| length.parse().ok()).collect();
    if read.as_deref() != Some(shape) {
        return Err(format!("not of shape {shape:?}"));
    }
    let width = descr[2..].parse().unwrap_or(usize::MAX);
    let size = shape.iter().try_fold(width, |size, length| size.checked_mul(*length as usize));
    if size != Some(data.len()) {
        return Err(short());
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_what_numpy_writes() {
        let text = |shape: &[u32]| {
            let header = header("<f4", shape);
            assert_eq!(header.len() % ALIGNMENT, 0);
            String::from_utf8_lossy(&header[10..]).trim_end().to_owned()
        };
        assert_eq!(text(&[]), "{'descr': '<f4', 'fortran_order': False, 'shape': (), }");
        assert_eq!(text(&[3]), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
        assert_eq!(text(&[2, 3]), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
        assert_eq!(header("<f4", &[u32::MAX; 64]).len() % ALIGNMENT, 0);
    }

    #[test]
    fn data_comes_back_and_what_is_another_array_is_refused() {
        for shape in [&[][..], &[4], &[2, 2], &[0, 7]] {
            let size: u32 = shape.iter().product();
            let whole = [header("<f4", shape), vec![7; size as usize * 4]].concat();
            assert_eq!(data(&whole, "<f4", shape), Ok(&vec![7; size as usize * 4][..]));
            assert!(data(&whole, "<f8", shape).is_err());
            assert!(data(&whole, "<f4", &[5]).is_err());
            for len in 0..whole.len() {
                assert!(data(&whole[..len], "<f4", shape).is_err());
            }
        }
    }
}
