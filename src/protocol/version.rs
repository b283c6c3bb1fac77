//! What a peer's version number stands for.
//!
//! The number is the place of the version in a long list. Since 4.0.0 the list is regular: two places a patch release
//! (the first for its snapshot), twenty a minor release.

/// From this version on a peer can be asked for its running info and told to consume a message directly.
pub const V3_1_8_SNAPSHOT: i32 = 62;
/// From this version on a broker understands SQL-92 filters.
pub const V4_1_0_SNAPSHOT: i32 = 232;
/// From this version on a name server answers routes in standard JSON.
pub const V4_9_4: i32 = 401;
/// Peers above this version are told `GO_AWAY` when a server shuts down.
pub const V5_3_1: i32 = 475;

const V4_0_0: i32 = 213;
const V5_0_0: i32 = 413;
/// Versions beyond this one have no regular name.
const V5_9_9: i32 = V5_0_0 + 9 * 20 + 9 * 2;

/// The name of a version, as in `V5_3_3`; `V` and the number where the name is not known.
///
/// ```
/// use rocketmq_sync::protocol::{VERSION, version};
/// assert_eq!(version::name(VERSION), "V5_3_3");
/// assert_eq!(version::name(398), "V4_9_3_SNAPSHOT");
/// ```
pub fn name(version: i32) -> String {
    // A snapshot is one below its version, so 412 belongs to 5.0.0.
    let (major, first) = if version >= V5_0_0 - 1 { (5, V5_0_0) } else { (4, V4_0_0) };
    if !(V4_0_0 - 1..=V5_9_9).contains(&version) {
        return format!("V{version}");
    }
    let places = version - (first - 1);
    let (minor, place) = (places / 20, places % 20);
    let snapshot = if place % 2 == 0 { "_SNAPSHOT" } else { "" };
    format!("V{major}_{minor}_{}{snapshot}", place / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_versions_of_the_reference_table() {
        for (version, expected) in [
            (213, "V4_0_0"),
            (233, "V4_1_0"),
            (232, "V4_1_0_SNAPSHOT"),
            (399, "V4_9_3"),
            (401, "V4_9_4"),
            (409, "V4_9_8"),
            (412, "V5_0_0_SNAPSHOT"),
            (413, "V5_0_0"),
            (441, "V5_1_4"),
            (453, "V5_2_0"),
            (475, "V5_3_1"),
            (479, "V5_3_3"),
            (493, "V5_4_0"),
            (37, "V37"),
            (612, "V612"),
            (-1, "V-1"),
            (i32::MIN, "V-2147483648"),
        ] {
            assert_eq!(name(version), expected);
        }
    }
}
