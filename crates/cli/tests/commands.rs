//! The commands as users type them: `tests/cmd/*.md` are transcripts that are run and compared.

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cmd/*.md");
}
