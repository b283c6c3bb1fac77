//! Order where it takes a real broker: beside Java members, and when processes are killed.

use crate::real_target::RealTarget;
use crate::scenarios::ordered::Stage;

/// Java members beside ours: one hands its queues to the other, both ways.
pub fn beside_java(target: &RealTarget) {
    let stage = Stage::new(target, "ordered_beside", "orderly");
    let consume = stage.consume.clone();
    stage.play(|stage| {
        let ours = stage.join("ours", consume.ours());
        let java = stage.join("java", consume.apply(target.java()));
        stage.join("ours too", consume.ours());
        stage.leave(java);
        stage.join("java again", consume.apply(target.java()));
        stage.leave(ours);
    });
}

/// A process is killed twice; its queues are consumed by others when the broker has freed its locks.
pub fn killed(target: &RealTarget) {
    let stage = Stage::new(target, "ordered_killed", "orderly");
    let consume = stage.consume.clone();
    stage.play(|stage| {
        let first = stage.join("first", consume.ours());
        let second = stage.join("second", consume.ours());
        kill(stage, first);
        stage.join("third", consume.ours());
        kill(stage, second);
    });
}

fn kill(stage: &mut Stage, place: usize) {
    stage.crew.kill(place);
    stage.here.retain(|here| *here != place);
    stage.settle();
}
