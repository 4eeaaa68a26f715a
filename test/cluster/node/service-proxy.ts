// Replaces kube-proxy: forwards connections from the address of a Service to its ready Pods. The API server connects to such
// addresses when a webhook names a Service.
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { KubernetesObject } from '../../../src/resources/index.ts';
import { resetSocket } from '../reset-socket.ts';
import { type Pod, portNumber } from './pod.ts';

export interface Service extends KubernetesObject {
  readonly spec: {
    readonly clusterIP?: string;
    readonly selector?: Readonly<Record<string, string>>;
    readonly ports?: readonly {
      readonly port: number;
      readonly protocol?: string;
      readonly targetPort?: number | string;
    }[];
  };
}

interface Backend {
  readonly address: string;
  readonly port: number;
}

/** Backends by `address:port` of Services. */
type Routes = ReadonlyMap<string, readonly Backend[]>;

interface Listener {
  readonly server: Server;
  next: number;
}

export class ServiceProxy {
  #routes: Routes = new Map();
  readonly #listeners = new Map<string, Listener>();
  readonly #sockets = new Set<Socket>();
  readonly #onError: (text: string) => void;

  constructor(onError: (text: string) => void) {
    this.#onError = onError;
  }

  /** Sets the routes of new connections. Open connections are not changed. */
  route(routes: Routes): void {
    this.#routes = routes;
    for (const place of routes.keys()) {
      if (!this.#listeners.has(place)) {
        this.#listen(place);
      }
    }
    for (const [place, { server }] of this.#listeners) {
      if (!routes.has(place)) {
        this.#listeners.delete(place);
        server.close();
      }
    }
  }

  /** Stops listening, and ends all connections. */
  stop(): void {
    this.route(new Map());
    this.#sockets.forEach((socket) => socket.destroy());
  }

  #listen(place: string): void {
    const [host, port] = place.split(':');
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#accept(place, socket));
    const listener = { server, next: 0 };
    this.#listeners.set(place, listener);
    server.on('error', (error) =>
      this.#onError(`nothing can listen on the Service address ${place}: ${error.message}`),
    );
    server.listen(Number(port), host);
    server.unref();
  }

  /** Forwards a connection. As with kube-proxy, there is one attempt: it fails if nothing listens on the Pod. */
  #accept(place: string, client: Socket): void {
    this.#track(client);
    const backends = this.#routes.get(place) ?? [];
    const listener = this.#listeners.get(place);
    const turn = listener === undefined ? 0 : listener.next++;
    const backend = backends[turn % Math.max(1, backends.length)];
    if (backend === undefined) {
      resetSocket(client);
      return;
    }
    const upstream = connect({ port: backend.port, host: backend.address, noDelay: true });
    this.#track(upstream);
    upstream.once('error', () => resetSocket(client));
    upstream.once('connect', () => {
      client.pipe(upstream);
      upstream.pipe(client);
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

/** The routes of Services: their ready Pods, without terminating ones. */
export function routesOf(services: readonly Service[], pods: readonly Pod[]): Routes {
  const routes = new Map<string, readonly Backend[]>();
  for (const { metadata, spec } of services) {
    const { clusterIP, selector, ports = [] } = spec;
    if (clusterIP === undefined || clusterIP === 'None' || selector === undefined) {
      continue;
    }
    const chosen = pods.filter((pod) => pod.metadata.namespace === metadata.namespace && isBackend(pod, selector));
    for (const { port, protocol = 'TCP', targetPort = port } of ports) {
      if (protocol === 'TCP') {
        routes.set(
          `${clusterIP}:${port}`,
          chosen.flatMap((pod) => backendOf(pod, targetPort)),
        );
      }
    }
  }
  return routes;
}

function isBackend({ metadata, status }: Pod, selector: Readonly<Record<string, string>>): boolean {
  const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
  const isSelected = Object.entries(selector).every(([name, value]) => metadata.labels?.[name] === value);
  return isReady && isSelected && metadata.deletionTimestamp === undefined;
}

function backendOf(pod: Pod, targetPort: number | string): readonly Backend[] {
  const port = portNumber(pod, targetPort);
  const address = pod.status?.podIP;
  return port === undefined || address === undefined ? [] : [{ address, port }];
}
