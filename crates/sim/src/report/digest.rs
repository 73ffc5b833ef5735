//! SHA-256 (FIPS 180-4) in base64, by which a Content-Security-Policy names the scripts and styles that may be used.

/// The source expression that allows exactly `text`.
pub(super) fn allow(text: &str) -> String {
    format!("'sha256-{}'", base64(&sha256(text.as_bytes())))
}

const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];
const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The digest of `bytes`.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    let state = padded.as_chunks::<64>().0.iter().fold(START, compress);
    let mut digest = [0; 32];
    let words = state.iter().flat_map(|word| word.to_be_bytes());
    digest.iter_mut().zip(words).for_each(|(to, from)| *to = from);
    digest
}

// The letters are those of the standard.
#[allow(clippy::many_single_char_names)]
fn compress(state: [u32; 8], block: &[u8; 64]) -> [u32; 8] {
    // The last sixteen words of the schedule; each new one replaces the oldest.
    let mut window = [0_u32; 16];
    let (words, _) = block.as_chunks::<4>();
    window.iter_mut().zip(words).for_each(|(to, from)| *to = u32::from_be_bytes(*from));
    let mut next = state;
    for round in ROUNDS {
        let [w0, w1, .., w14, _] = window;
        let w9 = window.get(9).copied().unwrap_or_default();
        let [a, b, c, d, e, f, g, h] = next;
        let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let first = h.wrapping_add(high).wrapping_add(choice).wrapping_add(round).wrapping_add(w0);
        let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = low.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        next = [first.wrapping_add(second), a, b, c, d.wrapping_add(first), e, f, g];
        let early = w1.rotate_right(7) ^ w1.rotate_right(18) ^ (w1 >> 3);
        let late = w14.rotate_right(17) ^ w14.rotate_right(19) ^ (w14 >> 10);
        window.rotate_left(1);
        if let Some(newest) = window.last_mut() {
            *newest = w0.wrapping_add(early).wrapping_add(w9).wrapping_add(late);
        }
    }
    let mut sum = state;
    sum.iter_mut().zip(next).for_each(|(to, add)| *to = to.wrapping_add(add));
    sum
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for place in 0..4 {
            let digit = DIGITS.get(bits >> (18 - 6 * place) & 63).map_or('=', |digit| char::from(*digit));
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        sha256(text.as_bytes()).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    #[test]
    fn known_digests() {
        assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(base64(b"Man") + &base64(b"Ma") + &base64(b"M"), "TWFuTWE=TQ==");
    }

    #[test]
    fn vendored_files_are_those_of_the_package() {
        let readme = include_str!("vendor/README.md");
        for text in [
            include_str!("vendor/uPlot.iife.min.js"),
            include_str!("vendor/uPlot.min.css"),
            include_str!("vendor/LICENSE.uPlot"),
        ] {
            assert!(readme.contains(&hex(text)), "{}", hex(text));
        }
    }
}
