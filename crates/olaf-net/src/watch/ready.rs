//! Whether a role can do its work now, from its status.

use serde_json::Value;

/// Why the role cannot do its work now; empty: it can.
///
/// A switch needs each server that a job has asked it for. A worker needs to be in its job, and its
/// switch and server. A server needs nobody. A sharing controller needs to have heard every host of
/// its jobs, and no job to have failed; a sharing host its controller and the hosts of its job.
pub(super) fn reasons(status: &Value) -> Vec<String> {
    match status["role"].as_str() {
        Some("switch") => of_switch(status),
        Some("worker") => of_worker(status),
        Some("sum") => of_sum(status),
        Some("sharing controller") => of_controller(status),
        Some("sharing host") => of_host(status),
        _ => Vec::new(),
    }
}

fn of_switch(status: &Value) -> Vec<String> {
    let servers = status["servers"].as_array().into_iter().flatten();
    let silent = servers.filter(|server| server["alive"] == false).map(|server| {
        let what = if server["is_switch"] == true { "the switch above" } else { "the server" };
        format!(
            "{what}, {}, of job {} has not answered for {}",
            text(&server["address"]),
            server["job"],
            seconds(&server["silent_ns"]),
        )
    });
    silent.collect()
}

fn of_worker(status: &Value) -> Vec<String> {
    let mut reasons = Vec::new();
    if status["awaits_admission"] == true {
        reasons.push("the switch asks whether this worker's cluster may join".into());
    } else if status["joined"] == false {
        reasons.push(match &status["turned_away"] {
            Value::String(why) => format!("the worker was turned away: {why}"),
            _ => "the worker has not joined its job".to_owned(),
        });
    }
    for peer in ["switch", "server"] {
        if status[format!("{peer}_alive")] == false {
            let silent = seconds(&status[format!("{peer}_silent_ns")]);
            reasons.push(format!("the {peer} has not answered for {silent}"));
        }
    }
    reasons
}

fn of_sum(status: &Value) -> Vec<String> {
    let mut reasons = Vec::new();
    if status["standing"] != "in" {
        reasons.push(format!("the worker stands {} its job", text(&status["standing"])));
    }
    if status["switch_alive"] == false {
        let silent = seconds(&status["switch_silent_ns"]);
        reasons
            .push(format!("the switch {} has not answered for {silent}", text(&status["switch"])));
    }
    reasons
}

fn of_controller(status: &Value) -> Vec<String> {
    if status["superseded"] == true {
        return vec!["a later controller is at work: this one does nothing more".into()];
    }
    let jobs = status["jobs"].as_array().into_iter().flatten();
    let reason = |job: &Value| {
        let (number, unheard) = (&job["job"], &job["unheard"]);
        if job["failed"] == true {
            let why = text(&job["failure"]);
            return Some(format!("job {number} has failed ({why}): its tree is not down yet"));
        }
        let (heard, hosts) = (&job["heard"], &job["hosts"]);
        let missing = format!("job {number}: host {unheard} was not heard yet, {heard} of {hosts}");
        (!unheard.is_null()).then_some(missing)
    };
    jobs.filter_map(reason).collect()
}

fn of_host(status: &Value) -> Vec<String> {
    let mut reasons = Vec::new();
    if !status["gone"].is_null() {
        reasons
            .push(format!("host {} of the job does not answer: the job is over", status["gone"]));
    }
    let controller = &status["controller"];
    if controller["heard"] == false {
        let address = text(&controller["address"]);
        reasons.push(format!("the sharing controller, {address}, was not heard yet"));
    }
    let peers = status["peers"].as_array().into_iter().flatten();
    for peer in peers.filter(|peer| peer["heard"] == false) {
        let (rank, address) = (&peer["rank"], text(&peer["address"]));
        reasons.push(format!("host {rank} of the job, {address}, was not heard yet"));
    }
    reasons
}

fn seconds(ns: &Value) -> String {
    format!("{:.1} s", ns.as_f64().unwrap_or_default() / 1e9)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
