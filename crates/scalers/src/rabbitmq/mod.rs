//! rabbitmq: queues, over AMQP or HTTP.
