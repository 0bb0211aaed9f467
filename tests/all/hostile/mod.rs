//! What a repository, or an agent, that means harm tries; and what comes of it.

mod links;
mod review;
mod shown;
mod trust;
