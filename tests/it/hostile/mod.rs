//! Attacked from outside: each test does what an attacker would do, and looks at what the attacker wants.

mod clone;
mod found_config;
mod imports;
mod listeners;
mod lost_seal;
mod pages;
mod secrets;
mod targets;
mod task_files;
