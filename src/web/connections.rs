//! Connections: accepted, given a limited time to say what they want, and ended in order.

use std::{future::Future, io, pin::pin, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, task::JoinSet};

/// How long connections may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the moment a request is awaited until its headers are complete: a client that never
    /// ends them must not hold a connection, and one that asks for nothing more lets go of it.
    pub headers: Duration,
    /// For what is under way when we are asked to stop.
    pub ending: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            headers: Duration::from_secs(15),
            ending: Duration::from_secs(30),
        }
    }
}

/// Answers until `stop`, and then what is under way.
pub async fn answer(
    listener: TcpListener,
    router: Router,
    patience: Patience,
    stop: impl Future<Output = ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(patience.headers);
    let open = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                wait_out(&error).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        while connections.try_join_next().is_some() {}
        // A client that goes away or talks nonsense is no error.
        connections.spawn(async move { connection.await.ok() });
    }
    drop(listener);
    if tokio::time::timeout(patience.ending, open.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("cut off requests that had not ended");
    }
    // What is left holds connections to the database.
    connections.shutdown().await;
}

/// A client that left before it was accepted is nothing; no file left to give it is, and trying
/// again at once would only turn in circles.
async fn wait_out(error: &io::Error) {
    if !matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    ) {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc};

    use axum::{
        body::{Body, Bytes},
        routing::get,
    };
    use futures_util::stream;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        sync::oneshot,
    };

    use super::*;

    /// Long enough never to pass in a test that works.
    const NEVER: Duration = Duration::from_mins(10);

    async fn started(headers: Duration) -> (TcpStream, oneshot::Sender<()>, impl Future) {
        let router = Router::new().route("/", get(async || "here"));
        let patience = Patience {
            headers,
            ending: NEVER,
        };
        serving(router, patience).await
    }

    async fn serving(
        router: Router,
        patience: Patience,
    ) -> (TcpStream, oneshot::Sender<()>, impl Future) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let answering = tokio::spawn(answer(listener, router, patience, async {
            let _ = stopped.await;
        }));
        let client = TcpStream::connect(address).await.unwrap();
        (client, stop, answering)
    }

    async fn all_it_says(client: &mut TcpStream) -> String {
        let mut said = Vec::new();
        // A connection that is reset has ended too.
        let _ = client.read_to_end(&mut said).await;
        String::from_utf8(said).unwrap()
    }

    #[tokio::test]
    async fn headers_that_never_end_do_not_hold_the_connection_nor_the_process() {
        let (mut client, stop, answering) = started(Duration::from_millis(20)).await;
        client.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
        stop.send(()).unwrap();
        answering.await;
        assert!(!all_it_says(&mut client).await.contains("here"));
    }

    #[tokio::test]
    async fn what_does_not_end_in_time_is_cut_off_and_holds_nothing() {
        let held = Arc::new(());
        let holding = Arc::clone(&held);
        let endless = get(async move || {
            let ends_never = pending::<Result<Bytes, io::Error>>();
            Body::from_stream(stream::once(async move {
                let ended = ends_never.await;
                drop(holding);
                ended
            }))
        });
        let router = Router::new().route("/", endless);
        let patience = Patience {
            headers: NEVER,
            ending: Duration::from_millis(20),
        };
        let (mut client, stop, answering) = serving(router, patience).await;
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await
            .unwrap();
        let mut said = [0; 15];
        client.read_exact(&mut said).await.unwrap();
        stop.send(()).unwrap();
        answering.await;
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn what_is_asked_is_answered_and_then_the_connection_ends() {
        let (mut client, stop, answering) = started(NEVER).await;
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await
            .unwrap();
        let mut said = [0; 15];
        client.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"HTTP/1.1 200 OK");
        stop.send(()).unwrap();
        answering.await;
        assert!(all_it_says(&mut client).await.ends_with("here"));
    }
}
