// A load balancer like a Service: one address for all ready replicas. A connection goes to the next replica in turn
// that accepts it, and stays there.
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class Balancer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #ports: readonly number[] = [];
  #next = 0;

  private constructor() {
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#accept(socket));
  }

  static async start(): Promise<Balancer> {
    const balancer = new Balancer();
    await new Promise<void>((resolve) => balancer.#server.listen(0, '127.0.0.1', resolve));
    return balancer;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Sets the target ports on 127.0.0.1 for new connections. */
  set backends(ports: readonly number[]) {
    this.#ports = ports;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#sockets.forEach((socket) => socket.destroy());
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    this.#track(client);
    const first = this.#next++;
    const ports = this.#ports.map((_, index) => this.#ports[(first + index) % this.#ports.length] ?? 0);
    this.#try(client, ports);
  }

  #try(client: Socket, [port, ...others]: readonly number[]): void {
    if (port === undefined) {
      client.destroy();
      return;
    }
    const backend = connect(port, '127.0.0.1');
    backend.setNoDelay(true);
    client.setNoDelay(true);
    const refused = (): void => this.#try(client, others);
    backend.once('error', refused);
    backend.once('connect', () => {
      backend.off('error', refused);
      this.#track(backend);
      client.on('close', () => backend.destroy());
      backend.on('close', () => client.destroy());
      client.pipe(backend);
      backend.pipe(client);
    });
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
