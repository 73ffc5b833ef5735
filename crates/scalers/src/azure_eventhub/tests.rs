use api::keda::KedaProfile;

use super::*;

#[test]
fn the_hub_is_a_word_in_2_20_and_a_key_in_2_21() {
    let names =
        |connection| KedaProfile::ALL.map(|profile| names_hub(connection, &profile.behavior().triggers));
    assert_eq!(names("Endpoint=sb://h/;EntityPath=hub"), [true, true]);
    assert_eq!(names("Endpoint=sb://h/; entitypath =hub"), [false, true]);
    assert_eq!(names("Endpoint=sb://EntityPath/"), [true, false]);
    assert_eq!(names("Endpoint=sb://h/"), [false, false]);
}
