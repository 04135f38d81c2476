//! duroxide's own validation suite: every function of it, one test each. Each runs twice: with
//! fetches that claim once, and with fetches that wait; side by side, because most of the time is
//! spent asleep. A new version of duroxide with more functions fails [`complete`].

/// Declares the tests of the listed functions, and the list itself.
macro_rules! validations {
    ($($group:ident { $($name:ident,)* })*) => {
        $(mod $group { $(
            #[tokio::test]
            async fn $name() {
                crate::factory::in_both_modes(|factory| async move {
                    duroxide::provider_validation::$group::$name(&factory).await;
                })
                .await;
            }
        )* })*

        /// Every function that is tested here, as `group::name`.
        pub(crate) const LISTED: &[&str] = &[$($(concat!(stringify!($group), "::", stringify!($name)),)*)*];
    };
}
use validations;

mod complete;
mod factory;
mod list;
mod pooled;
mod special;
