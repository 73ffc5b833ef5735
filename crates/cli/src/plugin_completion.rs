//! Completion of `kubectl plimsoll` in shells: kubectl starts `kubectl_complete-plimsoll` with the words after `kubectl plimsoll`, of
//! which the last one is completed. It reads a candidate per line, with a description after a tab, and then a directive of cobra.

use clap::builder::StyledStr;
use clap::{Arg, Command, ValueHint};

/// The directive by which the shell completes names of files if there is no candidate (`ShellCompDirectiveDefault`).
const FILES: &str = ":0";
/// The directive by which it does not (`ShellCompDirectiveNoFileComp`).
const NO_FILES: &str = ":4";

/// The place of a word in a command line.
struct WordPlace<'a> {
    command: &'a Command,
    /// How many positional arguments are before the word.
    positionals: usize,
    /// The option whose value the word is.
    option: Option<&'a Arg>,
    /// Whether `--` is before the word, so that it is no option.
    is_escaped: bool,
}

/// What a word can be completed to.
#[derive(Default)]
struct Candidates {
    lines: Vec<String>,
    /// Whether the word can be the name of a file, which the shell completes.
    may_be_file: bool,
}

/// The answer to kubectl.
pub(crate) fn answer(mut command: Command, words: &[String]) -> String {
    // Building adds the flags and commands that clap has itself, such as `--help`.
    command.build();
    let mut place = WordPlace::first(&command);
    let (last, before) = words.split_last().map_or(("", words), |(last, before)| (last.as_str(), before));
    for word in before {
        place.pass(word);
    }
    let found = place.candidates(last);
    let directive = if found.may_be_file { FILES } else { NO_FILES };
    let lines = found.lines.iter().map(String::as_str).chain([directive]);
    lines.flat_map(|line| [line, "\n"]).collect()
}

impl<'a> WordPlace<'a> {
    /// The first word of a command.
    fn first(command: &'a Command) -> Self {
        Self { command, positionals: 0, option: None, is_escaped: false }
    }

    /// Moves on to the next word.
    fn pass(&mut self, word: &str) {
        if self.option.take().is_some() {
            return;
        }
        if self.is_escaped {
            self.positionals += 1;
        } else if word == "--" {
            self.is_escaped = true;
        } else if let Some(long) = word.strip_prefix("--") {
            self.option = self.long(long).filter(|option| is_value_next(option));
        } else if let Some(shorts) = word.strip_prefix('-').filter(|shorts| !shorts.is_empty()) {
            self.option = self.short(shorts);
        } else if let Some(command) = self.subcommand(word) {
            *self = Self::first(command);
        } else {
            self.positionals += 1;
        }
    }

    /// What the word here can be completed to.
    fn candidates(&self, word: &str) -> Candidates {
        if let Some(option) = self.option {
            return values(option, word);
        }
        if word.starts_with('-') && !self.is_escaped {
            return match word.strip_prefix("--").and_then(|flag| flag.split_once('=')) {
                // Shells complete only the part after `=`.
                Some((long, value)) => {
                    self.long(long).map(|option| values(option, value)).unwrap_or_default()
                }
                None => self.options_like(word),
            };
        }
        let mut found = self.positional().map(|argument| values(argument, word)).unwrap_or_default();
        if self.positionals == 0 && !self.is_escaped {
            let commands = self.command.get_subcommands();
            let commands =
                commands.filter(|known| !known.is_hide_set() && known.get_name().starts_with(word));
            found.lines.extend(commands.map(|known| line(known.get_name(), known.get_about())));
        }
        found
    }

    fn options(&self) -> impl Iterator<Item = &'a Arg> {
        self.command.get_arguments().filter(|argument| !argument.is_positional())
    }

    /// The option with this long name; none for `NAME=VALUE`.
    fn long(&self, name: &str) -> Option<&'a Arg> {
        let has = |names: Option<Vec<&str>>| names.is_some_and(|names| names.contains(&name));
        self.options().find(|option| has(option.get_long_and_visible_aliases()) || has(option.get_aliases()))
    }

    /// The option of a word such as `-n` or `-vn` whose value is the next word.
    fn short(&self, shorts: &str) -> Option<&'a Arg> {
        let mut rest = shorts.chars();
        while let Some(short) = rest.next() {
            let is_named = |option: &&Arg| {
                option.get_short_and_visible_aliases().is_some_and(|names| names.contains(&short))
            };
            let option = self.options().find(is_named)?;
            if takes_value(option) {
                // What follows in the word is its value.
                return Some(option).filter(|option| rest.as_str().is_empty() && is_value_next(option));
            }
        }
        None
    }

    fn subcommand(&self, word: &str) -> Option<&'a Command> {
        if self.positionals > 0 { None } else { self.command.find_subcommand(word) }
    }

    /// The positional argument here; the last one may have several values.
    fn positional(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let is_list = |argument: &&Arg| argument.get_num_args().is_some_and(|count| count.max_values() > 1);
        all.get(self.positionals).or(all.last().filter(|last| is_list(last))).copied()
    }

    /// The options that begin like a word.
    fn options_like(&self, word: &str) -> Candidates {
        let mut lines = Vec::new();
        for option in self.options().filter(|option| !option.is_hide_set()) {
            let longs = option.get_long_and_visible_aliases().unwrap_or_default();
            let longs = longs.into_iter().map(|name| format!("--{name}"));
            let shorts = option.get_short_and_visible_aliases().unwrap_or_default();
            let shorts = shorts.into_iter().map(|name| format!("-{name}"));
            let names = longs.chain(shorts).filter(|name| name.starts_with(word));
            lines.extend(names.map(|name| line(&name, option.get_help())));
        }
        Candidates { lines, may_be_file: false }
    }
}

fn takes_value(option: &Arg) -> bool {
    option.get_num_args().is_some_and(|count| count.takes_values())
}

/// Whether the value of an option is the word after it.
fn is_value_next(option: &Arg) -> bool {
    takes_value(option) && !option.is_require_equals_set()
}

/// The values of an argument that begin like a word, or like its last part where the argument is a list.
fn values(argument: &Arg, word: &str) -> Candidates {
    let parts = argument.get_value_delimiter().and_then(|delimiter| word.rsplit_once(delimiter));
    let (kept, part) = match parts {
        Some((kept, part)) => (word.get(..=kept.len()).unwrap_or_default(), part),
        None => ("", word),
    };
    let possible = argument.get_possible_values();
    let possible = possible.iter().filter(|value| !value.is_hide_set() && value.get_name().starts_with(part));
    let lines = possible.map(|value| line(&format!("{kept}{}", value.get_name()), value.get_help()));
    let is_path = matches!(
        argument.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath | ValueHint::ExecutablePath
    );
    Candidates { lines: lines.collect(), may_be_file: is_path }
}

/// A candidate with the first line of its description.
fn line(candidate: &str, help: Option<&StyledStr>) -> String {
    let help = help.map(StyledStr::to_string).unwrap_or_default();
    match help.lines().next() {
        Some(help) => format!("{candidate}\t{help}"),
        None => candidate.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// The candidates without their descriptions, and the directive.
    fn completed(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let answer = answer(crate::Cli::command(), &words);
        answer.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn last_word_is_completed() {
        for (words, expected) in [
            (&["wh"][..], &["why", ":4"][..]),
            (&["completion", ""], &["bash", "elvish", "fish", "powershell", "zsh", ":4"]),
            (&["completion", "bash", ""], &[":4"]),
            (&["metrics", "do"], &["doctor", ":4"]),
            (&["help", "wh"], &["why", ":4"]),
            (&["get", "s"], &["so", "sj", ":4"]),
            (&["get", "hpa", "s"], &["so", "sj", ":4"]),
            (&["up", "--workloads", "r"], &["report", ":4"]),
            (&["up", "--workloads", "php-apache,ch"], &["php-apache,checkout", ":4"]),
            (&["up", "--workloads=all,r"], &["all,report", ":4"]),
            (&["up", "--kubeconfig", ""], &[":0"]),
            (&["up", "--kubeconfig="], &[":0"]),
            (&["up", "a.yaml", "--wo"], &["--workloads", ":4"]),
            (&["validate", "a.yaml", ""], &[":0"]),
            (&["why", "-n", "shop", "hpa/web", "--si"], &["--since", ":4"]),
            (&["why", "--", "--si"], &[":0"]),
            (&["get", "-An", "so", "h"], &["hpa", ":4"]),
            (&["get", "-nso", "h"], &["hpa", ":4"]),
            (&["--nonsense", "wh"], &["why", ":4"]),
            (&["nonsense", "wh"], &[":4"]),
        ] {
            assert_eq!(completed(words), expected, "{words:?}");
        }
    }

    #[test]
    fn nothing_typed_lists_all_commands_with_descriptions() {
        for words in [Vec::new(), vec![String::new()]] {
            let answer = answer(crate::Cli::command(), &words);
            assert!(
                answer.contains("\nwhy\tExplain a decision as arithmetic a person can follow\n"),
                "{answer}"
            );
            assert!(answer.ends_with("\n:4\n") && !answer.contains("\n--"), "{answer}");
        }
    }

    #[test]
    fn options_are_listed_after_a_dash() {
        let found = completed(&["get", "-"]);
        for name in ["--all-namespaces", "-A", "--namespace", "-n", "--help", "-h"] {
            assert!(found.iter().any(|known| known == name), "{name}: {found:?}");
        }
    }
}
