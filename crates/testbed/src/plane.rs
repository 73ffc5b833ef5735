//! Starts a control plane, waits until it is ready, and ends it.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::access::{Access, pki_folder};
use crate::addresses::HOST_ADDRESS;
use crate::cache::Cache;
use crate::components::{self, Ports};
use crate::ensure::Parts;
use crate::error::Error;
use crate::node::{Nodes, is_root};
use crate::options::Options;
use crate::pki::Pki;
use crate::process::{Component, tail};
use crate::progress::Progress;
use crate::release::Release;
use crate::state::{self, State};

/// A running control plane: etcd, kube-apiserver and kube-controller-manager. They end when it is dropped, and also when
/// the process that holds it is killed.
#[derive(Debug)]
pub struct ControlPlane {
    access: Access,
    components: Vec<Component>,
    nodes: Option<Nodes>,
    state: State,
}

/// How often a control plane is started with other ports, because another process may take a port that was free.
const MAX_START_ATTEMPTS: usize = 3;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl ControlPlane {
    /// Builds missing programs, starts all components, and returns when the control plane is ready.
    pub fn start(options: &Options) -> Result<Self, Error> {
        if options.nodes.is_some() && !is_root() {
            return Err(Error::NotRoot);
        }
        let cache = Cache::of_user()?;
        let release = options.release.map_or_else(Release::chosen, Ok)?;
        let parts = Parts::of_release(release, &cache, &mut Progress::stderr())?;
        let state = match &options.state {
            Some(folder) => State::claim(folder)?,
            None => State::temporary(&cache)?,
        };
        let pki = Pki::new()?;
        let nodes =
            options.nodes.as_ref().map(|nodes| Nodes::claim(nodes, state.folder(), &cache)).transpose()?;
        let address = if nodes.is_some() { HOST_ADDRESS } else { Ipv4Addr::LOCALHOST };
        let access = Access::new(state.folder(), address, Ports::free()?, pki.clone(), parts.clone());
        let mut plane = Self { access, components: Vec::new(), nodes, state };
        for attempt in 1.. {
            match plane.bring_up(options) {
                Err(error) if attempt < MAX_START_ATTEMPTS && lost_a_port(&error) => {
                    plane.end();
                    let folder = plane.state.folder();
                    plane.access = Access::new(folder, address, Ports::free()?, pki.clone(), parts.clone());
                }
                result => {
                    result?;
                    break;
                }
            }
        }
        plane.state.ready()?;
        Ok(plane)
    }

    /// Replaces kube-apiserver and kube-controller-manager by those of another release. etcd, its data, ports and certificates
    /// stay, as when a cluster is upgraded in place.
    pub fn change_release(&mut self, release: Release, options: &Options) -> Result<(), Error> {
        self.access.parts = Parts::of_release(release, &Cache::of_user()?, &mut Progress::stderr())?;
        // The first component is etcd.
        let mut replaced = self.components.split_off(self.components.len().min(1));
        replaced.iter_mut().for_each(Component::release);
        replaced.iter_mut().for_each(Component::wait);
        self.start_servers(options)
    }

    /// The access to the control plane.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Blocks until the end is requested, or until a component ends by itself, which is an error.
    pub fn watch(&mut self) -> Result<(), Error> {
        while !self.state.asked_to_stop() {
            self.check()?;
            std::thread::sleep(POLL_INTERVAL * 5);
        }
        Ok(())
    }

    fn bring_up(&mut self, options: &Options) -> Result<(), Error> {
        self.access.write()?;
        let Access { ports, parts, .. } = self.access.clone();
        let data = state::data(&self.access.folder);
        if let Some(nodes) = &mut self.nodes {
            nodes.enter(&self.access.folder, options.deadline)?;
        }
        self.run("etcd", &parts.etcd, &components::etcd(ports, &data), Some(&data))?;
        self.start_servers(options)?;
        match &mut self.nodes {
            Some(nodes) => nodes.join(&self.access, options.deadline),
            None => Ok(()),
        }
    }

    fn start_servers(&mut self, options: &Options) -> Result<(), Error> {
        let Access { ports, parts, .. } = self.access.clone();
        let pki = pki_folder(&self.access.folder);
        // kube-apiserver is started before etcd is ready, because it retries its connection and initializes much before it needs etcd.
        self.run(
            "kube-apiserver",
            &parts.kube_apiserver,
            &components::api_server(ports, &pki, options),
            None,
        )?;
        self.wait(options.deadline, |access| listens(access) && answers(access, "/readyz"))?;
        if options.controller_manager {
            let kubeconfig = self.access.controller_manager_kubeconfig();
            let arguments = components::controller_manager(ports, &pki, &kubeconfig, options);
            self.run("kube-controller-manager", &parts.kube_controller_manager, &arguments, None)?;
            // The default service account is proof that the controllers act.
            let account = "/api/v1/namespaces/default/serviceaccounts/default";
            self.wait(options.deadline, |access| answers(access, account))?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        name: &'static str,
        program: &Path,
        arguments: &[String],
        data: Option<&Path>,
    ) -> Result<(), Error> {
        self.components.push(Component::start(name, program, arguments, &self.access.folder, data)?);
        Ok(())
    }

    /// Waits until a check of the component that was started last succeeds.
    fn wait(&mut self, deadline: Duration, ready: impl Fn(&Access) -> bool) -> Result<(), Error> {
        let until = Instant::now() + deadline;
        while !ready(&self.access) {
            self.check()?;
            if Instant::now() > until
                && let Some(last) = self.components.last()
            {
                return Err(last.failure(format!("was not ready after {} s", deadline.as_secs())));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        for component in &mut self.components {
            if let Some(status) = component.ended() {
                return Err(component.failure(format!("ended by itself ({status})")));
            }
        }
        self.nodes.as_mut().map_or(Ok(()), Nodes::check)
    }

    fn end(&mut self) {
        if let Some(nodes) = &mut self.nodes {
            nodes.end();
        }
        // All components are killed at the same time, because none has data to save.
        self.components.iter_mut().for_each(Component::release);
        self.components.iter_mut().for_each(Component::wait);
        self.components.clear();
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.end();
        self.state.leave();
    }
}

fn lost_a_port(error: &Error) -> bool {
    matches!(error, Error::Component { log, .. } if tail(log).contains("address already in use"))
}

/// Whether the port accepts connections; checked first because it is cheaper than a kubectl process.
fn listens(access: &Access) -> bool {
    let address = SocketAddr::from((access.address, access.ports.api_server));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

fn answers(access: &Access, path: &str) -> bool {
    let mut command = access.kubectl();
    command.args(["--request-timeout=10s", "get", "--raw", path]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
