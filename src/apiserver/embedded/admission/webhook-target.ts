import { quote } from '../../../go/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { ClusterState } from '../request/request.ts';
import type { WebhookService, ClientConfig } from './webhook.ts';

/** A network address. */
interface Address {
  readonly host: string;
  readonly port: number;
}

/** Resolves a Service. If undefined, the address in the Service object is used. */
export type ServiceResolver = (namespace: string, name: string, port: number) => Address | undefined;

/** Where a webhook is called. */
export interface Endpoint {
  /** `https://host:port` */
  readonly origin: string;
  /** Starts with a slash. */
  readonly path: string;
  /** The name that its certificate must be valid for. */
  readonly serverName: string;
  /** @throws Error with an API server's message when the Service does not exist */
  readonly address: () => Address;
}

const SERVICES = { group: '', resource: 'services' } as const;
const HTTPS_PORT = 443;

/** @throws Error with an API server's message when the configuration names no endpoint */
export function endpointOf(target: ClientConfig, state: ClusterState, resolve: ServiceResolver | undefined): Endpoint {
  const { service } = target;
  if (service !== undefined) {
    const serverName = `${service.name}.${service.namespace}.svc`;
    return {
      origin: `https://${serverName}:${service.port}`,
      path: new URL(service.path, 'https://service').pathname,
      serverName,
      address: () => serviceAddress(service, state, resolve),
    };
  }
  if (target.url === undefined || target.url === '') {
    throw new Error('webhook configuration must have either service or URL');
  }
  const url = URL.parse(target.url);
  if (url?.protocol !== 'https:') {
    throw new Error(`Unparsable URL: expected an absolute https URL, got ${quote(target.url)}`);
  }
  const host = url.hostname.replace(/^\[(?<address>.*)\]$/u, '$<address>');
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  return { origin: url.origin, path: url.pathname, serverName: host, address: () => ({ host, port }) };
}

function serviceAddress(
  { namespace, name, port }: WebhookService,
  state: ClusterState,
  resolve: ServiceResolver | undefined,
): Address {
  const given = resolve?.(namespace, name, port);
  if (given !== undefined) {
    return given;
  }
  const service = state.get(SERVICES, namespace, name);
  if (service === undefined) {
    throw new Error(`service ${quote(name)} not found`);
  }
  return addressOf(service, name, port);
}

function addressOf({ spec }: KubernetesObject, name: string, port: number): Address {
  const { type, externalName, clusterIP, ports } = isJsonObject(spec) ? spec : {};
  if (type === 'ExternalName' && typeof externalName === 'string') {
    return { host: externalName, port };
  }
  const isServed = Array.isArray(ports) && ports.some((one) => isJsonObject(one) && one.port === port);
  if (!isServed) {
    throw new Error(`no service port ${port} found for service ${quote(name)}`);
  }
  if (typeof clusterIP !== 'string' || clusterIP === '' || clusterIP === 'None') {
    throw new Error(`cannot route to service with ClusterIP ${quote(typeof clusterIP === 'string' ? clusterIP : '')}`);
  }
  return { host: clusterIP, port };
}
