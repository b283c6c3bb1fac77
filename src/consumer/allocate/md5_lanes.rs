//! MD5 of eight short keys at once, for their positions on the ring.
//!
//! A ring of a thousand members is ten thousand keys, and one after the other they are most of what it costs to make:
//! each step of MD5 waits for the one before. Eight keys side by side fill that time, and compilers turn the loop over
//! them into vector instructions. For a digest as such, and for long keys, there is the `md5` crate, which the
//! tests compare with. (MD5 is no protection against anybody; here it only spreads keys.)

/// Keys side by side.
pub(super) const LANES: usize = 8;
/// What two blocks can hold: 128 bytes less the mark and the length at the end.
pub(super) const LONGEST_KEY: usize = 119;

type Lanes = [u32; LANES];

/// Up to eight keys, padded as MD5 asks for.
pub(super) struct Batch {
    blocks: [[u8; 128]; LANES],
    has_two: [bool; LANES],
    len: usize,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self { blocks: [[0; 128]; LANES], has_two: [false; LANES], len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a key of at most [`LONGEST_KEY`] bytes; there must be a lane left.
    pub(super) fn push(&mut self, key: &[u8]) {
        let block = &mut self.blocks[self.len];
        block[..key.len()].copy_from_slice(key);
        block[key.len()] = 0x80;
        block[key.len() + 1..].fill(0);
        let has_two = key.len() > 55;
        let end = if has_two { 128 } else { 64 };
        block[end - 8..end].copy_from_slice(&(key.len() as u64 * 8).to_le_bytes());
        self.has_two[self.len] = has_two;
        self.len += 1;
    }

    /// The first four bytes of each digest, big-endian. Empties the batch.
    pub(super) fn take(&mut self) -> impl Iterator<Item = u32> + use<> {
        let first = compress(&START, &self.words(0));
        let mut digest = first[0];
        if self.has_two.contains(&true) {
            let second = compress(&first, &self.words(64))[0];
            for lane in 0..LANES {
                digest[lane] = if self.has_two[lane] { second[lane] } else { digest[lane] };
            }
        }
        let len = std::mem::take(&mut self.len);
        self.has_two = [false; LANES];
        digest.into_iter().take(len).map(u32::swap_bytes)
    }

    /// Word by word, the block that starts at `from`, lanes side by side.
    fn words(&self, from: usize) -> [Lanes; 16] {
        let mut words = [[0; LANES]; 16];
        for (lane, block) in self.blocks.iter().enumerate() {
            let (block, _) = block[from..].as_chunks::<4>();
            for (word, bytes) in words.iter_mut().zip(block) {
                word[lane] = u32::from_le_bytes(*bytes);
            }
        }
        words
    }
}

/// The state before the first block.
const START: [Lanes; 4] = [[0x6745_2301; LANES], [0xefcd_ab89; LANES], [0x98ba_dcfe; LANES], [0x1032_5476; LANES]];

/// The sines of 1 to 64, times 2^32.
#[rustfmt::skip]
const SINES: [[u32; 16]; 4] = [
    [
        0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
        0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    ],
    [
        0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
        0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    ],
    [
        0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
        0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    ],
    [
        0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
        0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
    ],
];

#[inline(always)]
fn step(mixed: u32, a: u32, b: u32, word: u32, sine: u32, turn: u32) -> u32 {
    b.wrapping_add(a.wrapping_add(mixed).wrapping_add(word).wrapping_add(sine).rotate_left(turn))
}

/// Sixteen steps, over the words from `first` on in strides of `stride`.
#[inline(always)]
fn round(
    mix: impl Fn(u32, u32, u32) -> u32,
    [mut a, mut b, mut c, mut d]: [u32; 4],
    word: impl Fn(usize) -> u32,
    sines: &[u32; 16],
    (first, stride): (usize, usize),
    turns: [u32; 4],
) -> [u32; 4] {
    let word = |at: usize| word((first + at * stride) % 16);
    for at in [0, 4, 8, 12] {
        a = step(mix(b, c, d), a, b, word(at), sines[at], turns[0]);
        d = step(mix(a, b, c), d, a, word(at + 1), sines[at + 1], turns[1]);
        c = step(mix(d, a, b), c, d, word(at + 2), sines[at + 2], turns[2]);
        b = step(mix(c, d, a), b, c, word(at + 3), sines[at + 3], turns[3]);
    }
    [a, b, c, d]
}

/// The state after a block. The loop over the lanes is the outer one, with straight code inside: that is the form that
/// compilers make vector instructions of.
fn compress(state: &[Lanes; 4], words: &[Lanes; 16]) -> [Lanes; 4] {
    let mut new = [[0; LANES]; 4];
    for lane in 0..LANES {
        let old = [state[0][lane], state[1][lane], state[2][lane], state[3][lane]];
        let word = |at: usize| words[at][lane];
        let mut now = old;
        now = round(|b, c, d| d ^ (b & (c ^ d)), now, word, &SINES[0], (0, 1), [7, 12, 17, 22]);
        now = round(|b, c, d| c ^ (d & (b ^ c)), now, word, &SINES[1], (1, 5), [5, 9, 14, 20]);
        now = round(|b, c, d| b ^ c ^ d, now, word, &SINES[2], (5, 3), [4, 11, 16, 23]);
        now = round(|b, c, d| c ^ (b | !d), now, word, &SINES[3], (0, 7), [6, 10, 15, 21]);
        for part in 0..4 {
            new[part][lane] = old[part].wrapping_add(now[part]);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_crate(key: &[u8]) -> u32 {
        let digest = md5::compute(key);
        u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
    }

    #[test]
    fn keys_of_every_length_have_the_digest_that_the_crate_gives_them() {
        let text: Vec<u8> = (0..LONGEST_KEY).map(|n| (n * 7 + 1) as u8).collect();
        let keys: Vec<&[u8]> = (0..=LONGEST_KEY).map(|len| &text[..len]).collect();
        let mut batch = Batch::new();
        // Stretches of any number of lanes, and lanes of one and of two blocks side by side.
        for stride in [1, 3, 53] {
            let mut at = 0;
            for count in (1..=LANES).cycle().take(60) {
                let chosen: Vec<&[u8]> = (0..count).map(|n| keys[(at + n * stride) % keys.len()]).collect();
                chosen.iter().for_each(|key| batch.push(key));
                assert!(batch.take().eq(chosen.iter().map(|key| by_crate(key))), "{at} {count}");
                at += count;
            }
        }
    }
}
