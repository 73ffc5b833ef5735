//! The `Status` object on the wire.

use super::{Object, protobuf};
use crate::status::Status;

impl Object for Status {
    fn kind(&self) -> (String, String) {
        ("v1".to_owned(), "Status".to_owned())
    }

    fn json(&self, out: &mut Vec<u8>) {
        if let Ok(text) = api::gotext::json(&self.to_json()) {
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn protobuf(&self, out: &mut Vec<u8>) {
        protobuf::list_meta(out);
        protobuf::text(out, 2, "Failure");
        protobuf::text(out, 3, &self.message);
        protobuf::text(out, 4, &self.reason);
        if self.has_details() {
            protobuf::message(out, 5, |out| {
                let about = self.about.as_deref().cloned().unwrap_or_default();
                protobuf::text(out, 1, &about.name);
                protobuf::text(out, 2, &about.group);
                protobuf::text(out, 3, &about.kind);
                for cause in &self.causes {
                    protobuf::message(out, 4, |out| {
                        protobuf::text(out, 1, &cause.reason);
                        protobuf::text(out, 2, &cause.message);
                        protobuf::text(out, 3, &cause.field);
                    });
                }
                protobuf::number(out, 5, i64::from(self.retry_after.unwrap_or_default()));
                protobuf::text(out, 6, "");
            });
        }
        protobuf::number(out, 6, i64::from(self.code));
    }
}
