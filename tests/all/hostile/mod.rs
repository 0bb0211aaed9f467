//! What a repository, or an agent, that means harm tries; and what comes of it.

mod agents;
mod bounds;
mod boxed;
mod growth;
mod leftovers;
mod links;
mod merges;
mod messages;
mod review;
mod secrets;
mod shown;
mod tracked;
mod trust;
