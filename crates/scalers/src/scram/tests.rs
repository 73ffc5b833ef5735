use std::time::Duration;

use super::*;
use crate::off_thread::MAX_LOGIN_WORKERS;

/// The example of RFC 7677.
fn exchange() -> ScramExchange {
    let password = Secret::new("pencil");
    ScramExchange::with_nonce(ScramHash::Sha256, "user", &password, "rOprNGfwEbeRWgbNEkqO".to_owned())
}

const SERVER_FIRST: &[u8] =
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

#[tokio::test]
async fn rfc_7677_example() {
    let exchange = exchange();
    assert_eq!(exchange.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    let proof = exchange.prove(SERVER_FIRST).await.unwrap();
    assert_eq!(
        proof.message.reveal(),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    assert_eq!(proof.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
    assert!(proof.verify(b"v=AAAA").is_err());
    assert_eq!(proof.verify(b"e=invalid-proof"), Err(ScramError::Refused("invalid-proof".into())));
}

/// The example of RFC 5802.
#[tokio::test]
async fn rfc_5802_example() {
    let password = Secret::new("pencil");
    let nonce = "fyko+d2lbbFgONRv9qkxdawL".to_owned();
    let exchange = ScramExchange::with_nonce(ScramHash::Sha1, "user", &password, nonce);
    let first = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";
    let proof = exchange.prove(first).await.unwrap();
    assert_eq!(
        proof.message.reveal(),
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    );
    assert_eq!(proof.verify(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="), Ok(()));
}

#[tokio::test]
async fn proofs_are_computed_on_few_workers() {
    // All workers for logins are busy.
    let mut busy = Vec::new();
    for _ in 0..MAX_LOGIN_WORKERS {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let mut work = Box::pin(compute_login(move || held.recv().is_err()));
        assert!(futures::poll!(&mut work).is_pending());
        busy.push((release, work));
    }
    let mut proof = Box::pin(exchange().prove(SERVER_FIRST));
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut proof).await.is_err());
    for (release, work) in busy {
        drop(release);
        assert!(work.await);
    }
    assert!(proof.await.is_ok());
}

#[test]
fn invalid_server_messages_are_refused() {
    for wrong in [
        &b"\xff"[..],
        b"",
        b"r=other,s=QSXCR+Q6sek8bf92,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqO,s=QSXCR+Q6sek8bf92,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i=0",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=QSXCR+Q6sek8bf92,i=4294967295",
    ] {
        assert!(matches!(exchange().proof(wrong), Err(ScramError::Invalid(_))), "{wrong:?}");
    }
    assert!(matches!(exchange().proof(b"e=unknown-user"), Err(ScramError::Refused(_))));
}

#[test]
fn separators_in_user_names_are_escaped() {
    let exchange = ScramExchange::with_nonce(ScramHash::Sha512, "a,b=c", &Secret::new("x"), "n".into());
    assert_eq!(exchange.first(), "n,,n=a=2Cb=3Dc,r=n");
}
