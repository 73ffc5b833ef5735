use proptest::prelude::*;

use super::*;

const PODS: ResourceId = ResourceId(0);
const NODES: ResourceId = ResourceId(1);

fn object(text: &'static str) -> impl FnOnce(Revision) -> StoredObject {
    move |revision| StoredObject {
        text: Bytes::from_static(text.as_bytes()),
        revision,
        uid: "".into(),
        labels: Box::default(),
        fields: Box::default(),
        owners: Box::default(),
        deleting: false,
    }
}

#[test]
fn writes_increment_the_revision_and_refuse_stale_ones() {
    let mut store = Store::new(100);
    let key = || ObjectKey::new("default", "a");
    assert_eq!(store.create(PODS, key(), object("1")).unwrap().revision, 2);
    assert_eq!(store.create(PODS, key(), object("1")).unwrap_err(), WriteError::Exists);
    store.update(PODS, key(), 2, object("2")).unwrap();
    assert_eq!(store.update(PODS, key(), 2, object("2")).unwrap_err(), WriteError::Stale);
    assert_eq!(store.delete(PODS, &key(), 2, object("2")).unwrap_err(), WriteError::Stale);
    assert_eq!(store.delete(PODS, &key(), 3, object("2")).unwrap().revision, 4);
    assert_eq!(store.update(PODS, key(), 4, object("2")).unwrap_err(), WriteError::Missing);
    assert_eq!((store.revision(), store.count(PODS)), (4, 0));
}

#[test]
fn lists_are_sorted_and_continue_after_a_key() {
    let mut store = Store::new(100);
    for (namespace, name) in [("b", "x"), ("a", "y"), ("a", "x"), ("ab", "x")] {
        store.create(PODS, ObjectKey::new(namespace, name), object("")).unwrap();
    }
    store.create(NODES, ObjectKey::new("", "n"), object("")).unwrap();
    let names = |namespace, after: Option<&ObjectKey>| {
        let listed = store.list(PODS, namespace, after);
        listed.map(|(key, _)| format!("{}/{}", key.namespace, key.name)).collect::<Vec<_>>()
    };
    assert_eq!(names(None, None), ["a/x", "a/y", "ab/x", "b/x"]);
    assert_eq!(names(Some("a"), None), ["a/x", "a/y"]);
    assert_eq!(names(Some("a"), Some(&ObjectKey::new("a", "x"))), ["a/y"]);
    assert_eq!(names(None, Some(&ObjectKey::new("a", "y"))), ["ab/x", "b/x"]);
}

#[test]
fn changes_are_available_since_any_kept_revision() {
    let mut store = Store::new(2);
    for name in ["a", "b", "c"] {
        store.create(PODS, ObjectKey::new("", name), object("")).unwrap();
    }
    assert_eq!(store.changes(PODS, 1).err(), Some(RevisionExpired { oldest: 2 }));
    let names: Vec<_> = store.changes(PODS, 2).unwrap().map(|c| c.key.name.clone()).collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(store.changes(NODES, 1).unwrap().count(), 0);
    store.delete(PODS, &ObjectKey::new("", "a"), 2, object("last")).unwrap();
    let last = store.changes(PODS, 4).unwrap().next().cloned().unwrap();
    assert!(last.after.is_none());
    assert_eq!(last.gone.as_ref().unwrap().revision, 5);
    store.drop_resource(PODS);
    assert_eq!(store.count(PODS), 0);
}

#[test]
fn past_revisions_can_be_listed_while_kept() {
    let mut store = Store::new(3);
    store.create(PODS, ObjectKey::new("", "a"), object("1")).unwrap();
    store.create(PODS, ObjectKey::new("", "b"), object("2")).unwrap();
    store.update(PODS, ObjectKey::new("", "a"), 2, object("3")).unwrap();
    store.delete(PODS, &ObjectKey::new("", "b"), 3, object("2")).unwrap();
    let texts = |at| -> Vec<Bytes> {
        store.list_at(PODS, at).unwrap().into_values().map(|object| object.text.clone()).collect()
    };
    assert_eq!(texts(2), ["1"]);
    assert_eq!(texts(3), ["1", "2"]);
    assert_eq!(texts(4), ["3", "2"]);
    assert_eq!(texts(5), ["3"]);
    assert_eq!(store.list_at(PODS, 1).unwrap_err().oldest, 2);
}

#[test]
fn owners_and_dependents_are_indexed() {
    let mut store = Store::new(10);
    let with = |uid: &'static str, owners: &'static [&'static str]| {
        move |revision| StoredObject {
            uid: uid.into(),
            owners: owners.iter().map(|owner| (*owner).into()).collect(),
            ..object("")(revision)
        }
    };
    let (owner, child) = (ObjectKey::new("a", "owner"), ObjectKey::new("a", "child"));
    store.create(NODES, owner.clone(), with("1", &[])).unwrap();
    store.create(PODS, child.clone(), with("2", &["1"])).unwrap();
    assert_eq!(store.find_by_uid("1"), Some(&(NODES, owner.clone())));
    assert_eq!(store.owned_by("1").collect::<Vec<_>>(), [&(PODS, child.clone())]);
    store.update(PODS, child.clone(), 3, with("2", &[])).unwrap();
    assert_eq!(store.owned_by("1").count(), 0);
    store.update(PODS, child.clone(), 4, with("2", &["1"])).unwrap();
    store.delete(PODS, &child, 5, with("2", &["1"])).unwrap();
    assert_eq!((store.owned_by("1").count(), store.find_by_uid("2")), (0, None));
}

proptest! {
    /// A list followed by all changes equals a later list.
    #[test]
    fn list_and_changes_equal_the_current_state(
        writes in prop::collection::vec((0..5_u8, 0..3_u8), 0..60),
        at in 0..60_usize,
    ) {
        let mut store = Store::new(1000);
        let mut copy: Option<(Revision, BTreeMap<ObjectKey, Arc<StoredObject>>)> = None;
        for (index, (name, what)) in writes.iter().enumerate() {
            if index == at.min(writes.len().saturating_sub(1)) {
                let listed = store.list(PODS, None, None).map(|(k, v)| (k.clone(), Arc::clone(v))).collect();
                copy = Some((store.revision(), listed));
            }
            let key = ObjectKey::new("", &name.to_string());
            let now = store.get(PODS, &key).map_or(0, |object| object.revision);
            let _ = match what {
                0 => store.create(PODS, key, object("x")),
                1 => store.update(PODS, key, now, object("y")),
                _ => store.delete(PODS, &key, now, object("z")),
            };
        }
        if let Some((revision, mut objects)) = copy {
            for change in store.changes(PODS, revision).unwrap() {
                match &change.after {
                    Some(object) => objects.insert(change.key.clone(), Arc::clone(object)),
                    None => objects.remove(&change.key),
                };
            }
            let there: BTreeMap<ObjectKey, Arc<StoredObject>> =
                store.list(PODS, None, None).map(|(k, v)| (k.clone(), Arc::clone(v))).collect();
            prop_assert_eq!(objects, there);
        }
    }
}
