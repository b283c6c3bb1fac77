//! The picture of `mqcat assign --svg`: for each strategy a row now, a row with one more member, and a row without each;
//! a column for each queue, coloured by owner, with a dot where the owner is another one than now.

use crate::assign_plan::{Change, Owners, Plan};
use std::fmt::Write;
use std::sync::Arc;

const CELL: usize = 14;
const ROW: usize = 18;
const LABEL: usize = 300;
const NOTE: usize = 190;
const MARGIN: usize = 16;

pub fn picture(plans: &[Plan]) -> String {
    let columns = plans.iter().map(|plan| plan.queues.len()).max().unwrap_or_default();
    let width = 2 * MARGIN + LABEL + columns * CELL + NOTE;
    let mut body = String::new();
    let mut y = MARGIN;
    for plan in plans {
        y = panel(&mut body, plan, y) + ROW;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{y}\" viewBox=\"0 0 {width} {y}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// Draws a plan from `y` down, and returns where it ends.
fn panel(out: &mut String, plan: &Plan, y: usize) -> usize {
    let _ = writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"{}\" font-size=\"14\" font-weight=\"bold\">{}</text>",
        y + 14,
        escaped(&plan.title())
    );
    let mut y = y + ROW + 6;
    row(out, plan, y, "now", &plan.now, None);
    y += ROW + 4;
    for change in &plan.changes {
        let label = format!("{} {}", if change.joins { "+" } else { "\u{2212}" }, change.id);
        row(out, plan, y, &label, &change.owners, Some(change));
        y += ROW;
    }
    y
}

fn row(out: &mut String, plan: &Plan, y: usize, label: &str, owners: &Owners, change: Option<&Change>) {
    let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"{}\">{}</text>", y + 11, escaped(label));
    for (index, owner) in owners.iter().enumerate() {
        let x = MARGIN + LABEL + index * CELL;
        let tip = format!("{}: {}", plan.queues[index], owner.as_deref().unwrap_or("nobody"));
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{CELL}\" fill=\"{}\"><title>{}</title></rect>",
            CELL - 1,
            colour(plan, owner.as_ref()),
            escaped(&tip)
        );
        if *owner != plan.now[index] {
            let (x, y) = (x + CELL / 2, y + CELL / 2);
            let _ = writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"#000000\"/>");
        }
    }
    if let Some(Change { moved, own, joins, .. }) = change {
        let x = MARGIN + LABEL + plan.queues.len() * CELL + 8;
        let whose = if *joins { "to it" } else { "its own" };
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{}\">{moved} move, {own} of them {whose}</text>", y + 11);
    }
}

/// A colour for each member, neighbours far apart; grey for nobody, near black for who joins.
fn colour(plan: &Plan, owner: Option<&Arc<str>>) -> String {
    match owner.map(|owner| plan.members.iter().position(|id| id == owner)) {
        None => "#eeeeee".to_owned(),
        Some(None) => "#444444".to_owned(),
        // The golden angle: hues of any number of members stay apart.
        Some(Some(place)) => format!("hsl({}, {}%, 62%)", place * 137 % 360, 55 + place % 3 * 15),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Not allowed in XML at all.
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
