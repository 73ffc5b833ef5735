//! `parameters!`: generates a struct, its reader and its documentation from one declaration.

use super::{KedaProfile, Parameter, ParameterSource};

/// Declares the parameters of a scaler.
///
/// ```text
/// parameters! {
///     /// About.
///     pub struct Parameters of "text in front of every error" {
///         /// About, for the reference page.
///         field: Type = "key" | "alias" in [Metadata, Authentication], rule, rule "text", rule ["a", "b"];
///         /// Parameters that others declare, too.
///         shared: Group;
///     }
///     check Parameters::check
/// }
/// ```
///
/// Types: [`super::ParameterValue`]; an `Option` tells a missing parameter from an empty one. Rules: `required`, `default "text"`,
/// `one_of ["a", "b"]` (of a list each item), `only_one_of ["a", "b"]` (of a list), `separator ';'`, `removed "why"` (with
/// the type `Removed`), `removed_in_2_21 "why"`, `since_2_21` (earlier releases ignore it), `deprecated "why"`,
/// `deprecated_in_2_21 "why"`. `of` may be missing: then errors have no prefix. `check` is a
/// `fn(&mut Self, &Trigger) -> Result<(), ParseError>`; as in KEDA, it runs even if parameters are wrong (those are empty
/// then), and its error comes last.
///
/// Makes the struct (`Clone`, `Debug`, `Default`), `PARAMETERS`, `read(&Trigger) -> Result<Self, Error>`, and
/// [`super::ParameterGroup`], so that another declaration can include it.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident $(of $prefix:literal)? {
            $(
                $(#[doc = $doc:literal])*
                $field:ident : $type:ty
                    $(= $key:literal $(| $alias:literal)* in [$($source:ident),+ $(,)?]
                        $(, $rule:ident $($text:literal)? $([$($item:literal),* $(,)?])?)*)?;
            )*
        }
        $(check $check:expr)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        // Groups are documented where they are declared.
        #[allow(dead_code, missing_docs, unreachable_pub, clippy::allow_attributes)]
        $visibility struct $name {
            $( $(#[doc = $doc])* pub $field: $type, )*
        }

        #[allow(dead_code, unreachable_pub, clippy::allow_attributes)]
        impl $name {
            /// All parameters, for the reference page.
            pub const PARAMETERS: &'static [$crate::parameters::Parameter] =
                <Self as $crate::parameters::ParameterGroup>::PARAMETERS;

            /// Reads all parameters, or reports all errors.
            pub fn read(trigger: &$crate::Trigger) -> Result<Self, $crate::ScalerError> {
                let prefix: &[&str] = &[$($prefix)?];
                $crate::parameters::ParameterReader::read(trigger, prefix.first().copied())
            }
        }

        impl $crate::parameters::ParameterGroup for $name {
            const PARAMETERS: &'static [$crate::parameters::Parameter] = {
                const PARTS: &[&[$crate::parameters::Parameter]] = &[$(
                    $crate::parameters!(@part [$($doc)*] $type;
                        $($key $(| $alias)* in [$($source),+] $(, $rule $($text)? $([$($item),*])?)*)?),
                )*];
                const COUNT: usize = {
                    let mut parts = PARTS;
                    let mut count = 0;
                    while let [first, rest @ ..] = parts {
                        count += first.len();
                        parts = rest;
                    }
                    count
                };
                const ALL: [$crate::parameters::Parameter; COUNT] = $crate::parameters::flat(PARTS);
                &ALL
            };

            #[allow(unused_mut, unused_variables, clippy::allow_attributes)]
            fn fill(reader: &mut $crate::parameters::ParameterReader<'_>) -> Self {
                let mut read = Self {
                    $( $field: $crate::parameters!(@read reader [$($doc)*] $type;
                        $($key $(| $alias)* in [$($source),+] $(, $rule $($text)? $([$($item),*])?)*)?), )*
                };
                $( reader.check(&mut read, $check); )?
                read
            }
        }
    };

    (@part [$($doc:literal)*] $type:ty; ) => { <$type as $crate::parameters::ParameterGroup>::PARAMETERS };
    (@part [$($doc:literal)*] $type:ty; $($rest:tt)+) => {
        &[$crate::parameters!(@parameter [$($doc)*] $type; $($rest)+)]
    };

    (@read $reader:ident [$($doc:literal)*] $type:ty; ) => {
        <$type as $crate::parameters::ParameterGroup>::fill($reader)
    };
    (@read $reader:ident [$($doc:literal)*] $type:ty; $($rest:tt)+) => {{
        const PARAMETER: $crate::parameters::Parameter =
            $crate::parameters!(@parameter [$($doc)*] $type; $($rest)+);
        $reader.value::<$type>(&PARAMETER)
    }};

    (@parameter [$($doc:literal)*] $type:ty; $key:literal $(| $alias:literal)* in [$($source:ident),+]
        $(, $rule:ident $($text:literal)? $([$($item:literal),*])?)*
    ) => {{
        #[allow(unused_mut, clippy::allow_attributes)]
        let mut parameter = $crate::parameters::plain(
            &[$key $(, $alias)*],
            concat!($($doc, "\n"),*).trim_ascii(),
            <$type as $crate::parameters::ParameterValue>::KIND,
            &[$($crate::parameters::ParameterSource::$source),+],
        );
        $( $crate::parameters!(@rule parameter $rule $($text)? $([$($item),*])?); )*
        parameter
    }};

    (@rule $parameter:ident required) => { $parameter.required = true };
    (@rule $parameter:ident default $text:literal) => { $parameter.default = Some($text) };
    (@rule $parameter:ident separator $text:literal) => { $parameter.separator = $text };
    (@rule $parameter:ident removed $text:literal) => { $parameter.removed = Some($text) };
    (@rule $parameter:ident removed_in_2_21 $text:literal) => {{
        $parameter.removed = Some($text);
        $parameter.removed_in = $crate::parameters::KedaProfile::V2_21;
    }};
    (@rule $parameter:ident deprecated_in_2_21 $text:literal) => {{
        $parameter.deprecated = Some($text);
        $parameter.deprecated_in = $crate::parameters::KedaProfile::V2_21;
    }};
    (@rule $parameter:ident since_2_21) => { $parameter.since = $crate::parameters::KedaProfile::V2_21 };
    (@rule $parameter:ident deprecated $text:literal) => { $parameter.deprecated = Some($text) };
    (@rule $parameter:ident one_of [$($item:literal),*]) => { $parameter.one_of = &[$($item),*] };
    (@rule $parameter:ident only_one_of [$($item:literal),*]) => { $parameter.only_one_of = &[$($item),*] };
}

/// A parameter without rules.
pub const fn plain(
    keys: &'static [&'static str],
    about: &'static str,
    kind: &'static str,
    sources: &'static [ParameterSource],
) -> Parameter {
    Parameter {
        keys,
        about,
        kind,
        sources,
        default: None,
        required: false,
        one_of: &[],
        only_one_of: &[],
        separator: ',',
        removed: None,
        removed_in: KedaProfile::V2_20,
        since: KedaProfile::V2_20,
        deprecated: None,
        deprecated_in: KedaProfile::V2_20,
    }
}

/// Concatenates lists; `N` must be their total length.
pub const fn flat<const N: usize>(mut parts: &[&[Parameter]]) -> [Parameter; N] {
    let mut all = [plain(&[], "", "", &[]); N];
    let mut done = 0;
    while let [first, others @ ..] = parts {
        let mut list = *first;
        while let [parameter, rest @ ..] = list {
            if let (_, [slot, ..]) = all.split_at_mut(done) {
                *slot = *parameter;
            }
            done += 1;
            list = rest;
        }
        parts = others;
    }
    all
}
