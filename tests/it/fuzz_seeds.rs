//! The seeds of `fuzz/corpus`, through what the fuzz targets do with them: neither may rot between
//! two sessions of fuzzing.

use std::{fs, path::Path};

#[path = "../../fuzz/src/lib.rs"]
mod targets;

#[test]
fn every_seed_is_taken_by_its_target() {
    for (name, target) in [
        ("avro", targets::avro as fn(&[u8])),
        ("bundle", targets::bundle),
        ("event_payload", targets::event_payload),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/corpus")
            .join(name);
        let seeds: Vec<_> = fs::read_dir(folder).expect("seeds").collect();
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for seed in seeds {
            target(&fs::read(seed.expect("a seed").path()).expect("bytes"));
        }
    }
}
