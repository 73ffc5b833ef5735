//! Binary protocols of databases and brokers: SQL Server, Cassandra, AMQP 1.0, MySQL, MongoDB and Kafka.

/// The first byte of the input selects the protocol, the rest is the bytes that a server sends.
pub fn run(data: &[u8]) {
    let [which, bytes @ ..] = data else { return };
    let _ = match which % 6 {
        0 => scalers::mssql::is_response(bytes),
        1 => scalers::cassandra::is_response(bytes),
        2 => scalers::azure_eventhub::is_response(bytes),
        3 => scalers::mysql::is_response(bytes),
        4 => scalers::mongodb::is_response(bytes),
        _ => scalers::kafka::is_response(bytes),
    };
}
