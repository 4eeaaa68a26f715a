// Loaded before the program of a container (`node --import`): a Pod has an address of its own, as if in a network of its own,
// whatever address its processes listen on.
import { Server } from 'node:net';
import { env } from 'node:process';

/** Says which. */
const POD_ADDRESS = 'PORTCULLIS_TEST_POD_ADDRESS';

const { [POD_ADDRESS]: host } = env;
if (host !== undefined) {
  // The method of all servers: those of HTTP and TLS inherit it.
  const listen = Reflect.get(Server.prototype, 'listen') as (...args: unknown[]) => Server;
  Object.defineProperty(Server.prototype, 'listen', {
    value(this: Server, ...args: unknown[]): Server {
      return Reflect.apply(listen, this, withHost(args, host));
    },
  });
}

/** The arguments of a `listen` with another host: (port, host?, backlog?, callback?) or ({ port, host, … }, callback?). */
function withHost([first, ...rest]: readonly unknown[], address: string): unknown[] {
  if (typeof first === 'object' && first !== null) {
    return 'port' in first ? [{ ...first, host: address }, ...rest] : [first, ...rest];
  }
  const isPort = typeof first === 'number' || (typeof first === 'string' && /^\d+$/.test(first));
  if (!isPort) {
    return [first, ...rest];
  }
  return [first, address, ...(typeof rest[0] === 'string' ? rest.slice(1) : rest)];
}
