// Makes the servers of a container listen on the address of its Pod, whatever address they request, as in a network namespace.
// `node --import` loads it before the program.
import { Server } from 'node:net';
import { env } from 'node:process';

/** The environment variable with the address of the Pod. */
const POD_ADDRESS = 'PORTCULLIS_TEST_POD_ADDRESS';

const { [POD_ADDRESS]: host } = env;
if (host !== undefined) {
  // Servers of HTTP and TLS inherit this method.
  const listen = Reflect.get(Server.prototype, 'listen') as (...args: unknown[]) => Server;
  Object.defineProperty(Server.prototype, 'listen', {
    value(this: Server, ...args: unknown[]): Server {
      return Reflect.apply(listen, this, withHost(args, host));
    },
  });
}

/** Replaces the host in arguments of `listen`: (port, host?, backlog?, callback?) or ({ port, host, … }, callback?). */
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
