//! The errors of the kernel, by who has to do something about them.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};

/// The result of what can fail in the kernel.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the kernel. Every message is of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The data is not as it should be: an array that breaks Arrow's rules, a table without a
    /// column, a count below zero.
    Data(String),
    /// An argument has a value that nothing can be done with.
    Option(String),
    /// The input is not Arrow data, or has another Arrow type than expected.
    Type(String),
    /// The sum of counts exceeds 2^63 - 1, which Arrow's int64 cannot hold.
    Overflow,
    /// A panic, which is a fault of the kernel itself. The message has its place in the source.
    Panic(String),
}

impl Error {
    /// An error of the data, with this message.
    pub fn data(message: impl fmt::Display) -> Self {
        Error::Data(message.to_string())
    }

    /// An error of an argument, with this message.
    pub fn option(message: impl fmt::Display) -> Self {
        Error::Option(message.to_string())
    }

    /// Prefix the message with a place. Errors of other kinds than
    /// [`Error::Data`] and [`Error::Option`] do not change.
    pub fn at(self, place: impl fmt::Display) -> Self {
        match self {
            Error::Data(message) => Error::Data(format!("{place}: {message}")),
            Error::Option(message) => Error::Option(format!("{place}: {message}")),
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Overflow => f.write_str("counts add up to more than 2^63 - 1; scale them down"),
            Error::Data(message) | Error::Option(message) | Error::Type(message) => {
                f.write_str(message)
            }
            Error::Panic(message) => write!(f, "the kernel failed at {message}"),
        }
    }
}

impl std::error::Error for Error {}

thread_local! {
    /// The place and the message of the last panic of this thread.
    static PANIC: Cell<Option<String>> = const { Cell::new(None) };
}

/// A panic hook that keeps message and place of a panic for [`caught`], which turns them into an
/// error. It takes the place of Rust's own hook, which would also write to standard error.
pub fn note_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or("a place unknown".into(), ToString::to_string);
    PANIC.set(Some(format!("{place}: {}", message(info.payload()))));
}

/// Gives up work with an error that its loops do not look for; [`caught`] returns it.
#[cold]
pub(crate) fn give_up(error: Error) -> ! {
    resume_unwind(Box::new(error)) // unlike a panic this calls no hook
}

/// Run `work` and return its result, or the reason why it stopped.
///
/// # Errors
///
/// Returns the error of `work` or of `give_up`, and [`Error::Panic`] if `work` panics. A panic has a place in
/// the source if [`note_panic`] is the panic hook.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let panic = match panic.downcast::<Error>() {
            Ok(error) => return Err(*error),
            Err(panic) => panic,
        };
        let noted = PANIC.take();
        Err(Error::Panic(noted.unwrap_or_else(|| format!("a place unknown: {}", message(&*panic)))))
    })
}

fn message(payload: &dyn Any) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_place() {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(note_panic));
        let line = line!() + 1;
        let failed: Result<()> = caught(|| panic!("of {} kinds", 2));
        let still = caught(|| Ok(3));
        std::panic::set_hook(before);
        let Err(Error::Panic(message)) = failed else { panic!("{failed:?}") };
        assert!(message.starts_with(&format!("{}:{line}:", file!())), "{message}");
        assert!(message.ends_with(": of 2 kinds"), "{message}");
        assert_eq!(still, Ok(3));
    }

    #[test]
    fn errors_say_their_place_and_are_of_one_line() {
        let error = Error::data("a row is bad").at("pair 3");
        assert_eq!(error, Error::Data("pair 3: a row is bad".into()));
        assert_eq!(Error::option("no").at("x").to_string(), "x: no");
        assert_eq!(Error::Overflow.clone().at("x"), Error::Overflow);
        assert!(Error::Overflow.to_string().contains("2^63 - 1"));
    }
}
