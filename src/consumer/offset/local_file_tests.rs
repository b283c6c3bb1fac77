use super::*;
use crate::consumer::held::HeldTable;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rocketmq-sync-offsets-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn open(&self) -> Result<LocalFile> {
        LocalFile::open(&self.0, "127.0.0.1@DEFAULT", "g")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join("127.0.0.1@DEFAULT").join("g").join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn queue(id: i32) -> MessageQueue {
    MessageQueue::new("TopicTest", "broker-a", id)
}

/// Queues whose progress is this.
fn at(offsets: &[i64]) -> Vec<Arc<HeldQueue>> {
    let table = HeldTable::new("g".into());
    let take = |(id, offset): (usize, &i64)| {
        let held = table.acquire(&queue(id as i32)).unwrap();
        table.restart(&held, *offset).unwrap()
    };
    offsets.iter().enumerate().map(take).collect()
}

#[test]
fn what_was_stored_is_found_again_and_the_predecessor_beside_it() {
    let folder = Folder::new();
    let store = folder.open().unwrap();
    assert!(store.damage().is_none() && store.read(&queue(0)).is_none());
    let queues = at(&[5, 9]);
    let stored = store.store(&queues);
    assert!(stored.failed.is_empty() && stored.stored.len() == 2);
    assert_eq!(queues[0].with_progress(|progress| progress.stored), Some(5));
    queues[0].pass_over(6);
    store.store(&queues);
    drop(store);
    let text = fs::read_to_string(folder.file("offsets.json")).unwrap();
    assert!(text.contains(r#"{"brokerName":"broker-a","queueId":0,"topic":"TopicTest"}:6"#), "{text}");
    let store = folder.open().unwrap();
    assert_eq!((store.read(&queue(0)), store.read(&queue(1))), (Some(6), Some(9)));
    fs::remove_file(folder.file("offsets.json")).unwrap();
    drop(store);
    let store = folder.open().unwrap();
    assert_eq!((store.read(&queue(0)), store.read(&queue(1))), (Some(5), Some(9)), "the predecessor");
    assert!(store.damage().is_none());
}

#[test]
fn java_s_file_is_read_and_queues_of_others_stay_in_it() {
    let folder = Folder::new();
    fs::create_dir_all(folder.file("")).unwrap();
    let java = "{\n\t\"offsetTable\":{{\n\t\t\t\"brokerName\":\"broker-a\",\n\t\t\t\"queueId\":0,\n\t\t\t\"topic\":\"TopicTest\"\n\t\t}:42,{\"brokerName\":\"b\",\"queueId\":7,\"topic\":\"Other\"}:-1\n\t}\n}";
    fs::write(folder.file("offsets.json"), java).unwrap();
    let store = folder.open().unwrap();
    assert_eq!(store.read(&queue(0)), Some(42));
    assert_eq!(store.read(&MessageQueue::new("Other", "b", 7)), None, "-1 is no offset");
    store.store(&at(&[43, 1])[1..]);
    drop(store);
    let store = folder.open().unwrap();
    assert_eq!((store.read(&queue(0)), store.read(&queue(1))), (Some(42), Some(1)));
}

#[test]
fn a_file_that_is_damaged_anywhere_ends_no_start() {
    let folder = Folder::new();
    let store = folder.open().unwrap();
    let queues = at(&[5]);
    store.store(&queues);
    queues[0].pass_over(6);
    store.store(&queues);
    drop(store);
    let (sound, bak) =
        (fs::read(folder.file("offsets.json")).unwrap(), fs::read(folder.file("offsets.json.bak")).unwrap());
    let check = |damaged: Vec<u8>| {
        fs::write(folder.file("offsets.json"), &damaged).unwrap();
        let store = folder.open().unwrap();
        let offset = store.read(&queue(0));
        if store.damage().is_some() {
            assert_eq!(offset, Some(5), "the predecessor");
            assert_eq!(fs::read(folder.file("offsets.json.damaged")).unwrap(), damaged);
        }
        // What is written next does not replace a sound predecessor with what was damaged.
        store.store(&at(&[77]));
        drop(store);
        assert_eq!(folder.open().unwrap().read(&queue(0)), Some(77));
        fs::write(folder.file("offsets.json.bak"), &bak).unwrap();
    };
    for length in 0..sound.len() {
        check(sound[..length].to_vec());
    }
    for place in 0..sound.len() {
        let mut garbled = sound.clone();
        garbled[place] ^= 0x15;
        check(garbled);
    }
    check(vec![0; sound.len()]);

    // Both damaged: nothing is known, and both are told.
    fs::write(folder.file("offsets.json"), b"").unwrap();
    fs::write(folder.file("offsets.json.bak"), b"{").unwrap();
    let store = folder.open().unwrap();
    assert_eq!(store.read(&queue(0)), None);
    let damage = store.damage().unwrap();
    assert!(damage.contains("offsets.json:") && damage.contains("offsets.json.bak:"), "{damage}");
}

#[test]
fn a_file_has_one_user_at_a_time() {
    let folder = Folder::new();
    let first = folder.open().unwrap();
    let error = folder.open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.to_string().contains("instance_name"), "{error}");
    assert!(LocalFile::open(&folder.0, "127.0.0.1@DEFAULT", "other").is_ok(), "another group's file");
    drop(first);
    assert!(folder.open().is_ok());
    assert_eq!(LocalFile::open(&folder.0, "10.0.0.1@a/../b", "g").err().unwrap().kind(), ErrorKind::Config);
}

#[test]
fn what_cannot_be_written_is_kept_told_and_written_later() {
    let folder = Folder::new();
    let store = folder.open().unwrap();
    // A folder in the place of the new file cannot be written to, whoever runs this.
    fs::create_dir(folder.file("offsets.json.tmp")).unwrap();
    let queues = at(&[5]);
    let stored = store.store(&queues);
    assert!(stored.stored.is_empty() && stored.failed.len() == 1);
    assert!(store.failure().is_some());
    assert_eq!(store.read(&queue(0)), Some(5), "what is known counts");
    assert_eq!(queues[0].with_progress(|progress| progress.stored), None);
    fs::remove_dir(folder.file("offsets.json.tmp")).unwrap();
    assert_eq!(store.store(&queues).stored.len(), 1);
    assert!(store.failure().is_none());
}

#[test]
fn a_place_that_cannot_be_used_at_all_ends_no_start() {
    let folder = Folder::new();
    fs::write(folder.0.join("127.0.0.1@DEFAULT"), b"a file where a folder should be").unwrap();
    let store = folder.open().unwrap();
    assert!(store.failure().is_some());
    assert_eq!(store.store(&at(&[5])).failed.len(), 1);
}
