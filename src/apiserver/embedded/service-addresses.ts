// Allocates cluster IPs and node ports of Services (k8s.io/kubernetes, pkg/registry/core/service). Nothing listens there, but
// clients read these fields.
import { isIP } from 'node:net';
import { ApiError } from '../../cluster/index.ts';
import { invalid, isJsonObject } from '../../resources/index.ts';
import type { FieldError, JsonObject, KubernetesObject } from '../../resources/index.ts';
import type { KindBehaviour, KindWrite } from './kinds/kind-behaviour.ts';
import type { CollectionStore } from './store/collection-store.ts';

/** The start of addresses in 10.96.0.0/16, the first part of kubeadm's default range. */
const PREFIX = '10.96';
const LAST_ADDRESS = 256 * 256 - 2;

/** The cluster IP of the Service `kubernetes`. */
export const KUBERNETES_SERVICE_IP = `${PREFIX}.0.1`;

/** The default range of node ports in Kubernetes. */
const FIRST_NODE_PORT = 30_000;
const LAST_NODE_PORT = 32_767;

const SERVICES = 'services';

/** Allocates cluster IPs and node ports. */
export class ServiceAddresses implements KindBehaviour {
  /** The uid of the stored Service by cluster IP; node ports likewise. */
  readonly #addresses = new Map<string, string>();
  readonly #nodePorts = new Map<number, string>();
  #nextAddress = 2;
  #nextNodePort = FIRST_NODE_PORT;

  constructor(store: CollectionStore) {
    for (const service of store.collection(SERVICES).list()) {
      this.#allocate(service);
    }
    store.onChange((collection, { type, object, previous }) => {
      if (collection === SERVICES) {
        this.#release(previous);
        if (type !== 'DELETED') {
          this.#allocate(object);
        }
      }
    });
  }

  prepare({ object, old, subresource }: KindWrite): void {
    if (subresource !== undefined || !isJsonObject(object['spec'])) {
      return;
    }
    const spec = object['spec'];
    const before = isJsonObject(old?.['spec']) ? old['spec'] : {};
    dropNodePorts(spec, before);
    if (spec['type'] === 'ExternalName') {
      for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy']) {
        delete spec[field];
      }
      return;
    }
    const { name, uid } = object.metadata;
    const service = { name: typeof name === 'string' ? name : '', uid: typeof uid === 'string' ? uid : '' };
    this.#assignAddress(service, spec, before);
    this.#assignNodePorts(service, spec, before);
  }

  stillHolds(service: KubernetesObject): boolean {
    const { uid = '' } = service.metadata;
    const { address, nodePorts } = addressesOf(service);
    return (
      !isAllocatedToOther(this.#addresses, address, uid) &&
      !nodePorts.some((port) => isAllocatedToOther(this.#nodePorts, port, uid))
    );
  }

  #assignAddress({ name, uid }: ServiceIdentity, spec: JsonObject, before: JsonObject): void {
    const given = spec['clusterIP'] ?? before['clusterIP'];
    const requested = typeof given === 'string' ? given : '';
    // Validation rejects malformed addresses later.
    if (isIP(requested) !== 0 && requested !== before['clusterIP']) {
      const problem = !requested.startsWith(`${PREFIX}.`)
        ? 'the provided network does not match the current range'
        : isAllocatedToOther(this.#addresses, requested, uid)
          ? 'provided IP is already allocated'
          : undefined;
      if (problem !== undefined) {
        throw invalidService(
          name,
          invalid('spec.clusterIPs', [requested], `failed to allocate IP ${requested}: ${problem}`),
        );
      }
    }
    const address = requested === '' ? this.#freeAddress() : requested;
    spec['clusterIP'] = address;
    spec['clusterIPs'] = [address];
    spec['ipFamilies'] ??= before['ipFamilies'] ?? ['IPv4'];
    spec['ipFamilyPolicy'] ??= before['ipFamilyPolicy'] ?? 'SingleStack';
  }

  #assignNodePorts(service: ServiceIdentity, spec: JsonObject, before: JsonObject): void {
    if (!hasNodePorts(spec)) {
      return;
    }
    const ports = portsOf(spec);
    const previous = portsOf(before);
    /** `TCP/30080`, because protocols may share a number. */
    const assigned = new Set<string>();
    for (const [index, port] of ports.entries()) {
      const { nodePort = 0 } = port;
      if (typeof nodePort === 'number' && nodePort !== 0) {
        this.#requireNodePort(service, `spec.ports[${index}].nodePort`, nodePort, assigned.has(portKey(port)));
        assigned.add(portKey(port));
      }
    }
    for (const port of ports) {
      if (typeof port['nodePort'] === 'number' && port['nodePort'] !== 0) {
        continue;
      }
      const same = previous.find((one) => one['port'] === port['port'] && one['protocol'] === port['protocol']);
      const sibling = ports.find((one) => one['port'] === port['port'] && one['protocol'] !== port['protocol']);
      port['nodePort'] = same?.['nodePort'] ?? sibling?.['nodePort'] ?? 0;
      if (port['nodePort'] === 0 || assigned.has(portKey(port))) {
        port['nodePort'] = this.#freeNodePort(new Set(ports.map(({ nodePort }) => nodePort)));
      }
      assigned.add(portKey(port));
    }
  }

  #requireNodePort({ name, uid }: ServiceIdentity, field: string, nodePort: number, isDuplicate: boolean): void {
    if (isDuplicate || isAllocatedToOther(this.#nodePorts, nodePort, uid)) {
      throw invalidService(name, invalid(field, nodePort, 'provided port is already allocated'));
    }
    // Validation rejects malformed ports later.
    const isPort = Number.isInteger(nodePort) && nodePort > 0 && nodePort < 65_536;
    if (isPort && (nodePort < FIRST_NODE_PORT || nodePort > LAST_NODE_PORT)) {
      const range = `The range of valid ports is ${FIRST_NODE_PORT}-${LAST_NODE_PORT}`;
      throw invalidService(name, invalid(field, nodePort, `provided port is not in the valid range. ${range}`));
    }
  }

  #freeAddress(): string {
    for (let tries = 0; tries < LAST_ADDRESS; tries++) {
      const number = this.#nextAddress;
      this.#nextAddress = number === LAST_ADDRESS ? 2 : number + 1;
      const address = `${PREFIX}.${number >>> 8}.${number & 0xff}`;
      if (!this.#addresses.has(address)) {
        return address;
      }
    }
    throw ApiError.internal('failed to allocate a serviceIP: range is full');
  }

  /** @param except ports that the Service itself has */
  #freeNodePort(except: ReadonlySet<unknown>): number {
    for (let tries = FIRST_NODE_PORT; tries <= LAST_NODE_PORT; tries++) {
      const port = this.#nextNodePort;
      this.#nextNodePort = port === LAST_NODE_PORT ? FIRST_NODE_PORT : port + 1;
      if (!this.#nodePorts.has(port) && !except.has(port)) {
        return port;
      }
    }
    throw ApiError.internal('failed to allocate a nodePort: range is full');
  }

  #allocate(service: KubernetesObject): void {
    const { uid = '' } = service.metadata;
    const { address, nodePorts } = addressesOf(service);
    if (isIP(address) !== 0) {
      this.#addresses.set(address, uid);
    }
    for (const port of nodePorts) {
      this.#nodePorts.set(port, uid);
    }
  }

  #release(service: KubernetesObject | undefined): void {
    if (service === undefined) {
      return;
    }
    const { uid } = service.metadata;
    const { address, nodePorts } = addressesOf(service);
    if (this.#addresses.get(address) === uid) {
      this.#addresses.delete(address);
    }
    for (const port of nodePorts) {
      if (this.#nodePorts.get(port) === uid) {
        this.#nodePorts.delete(port);
      }
    }
  }
}

interface ServiceIdentity {
  readonly name: string;
  readonly uid: string;
}

function isAllocatedToOther<T>(owners: ReadonlyMap<T, string>, one: T, uid: string): boolean {
  return (owners.get(one) ?? uid) !== uid;
}

function addressesOf({ spec }: KubernetesObject): { readonly address: string; readonly nodePorts: readonly number[] } {
  const { clusterIP } = isJsonObject(spec) ? spec : {};
  const nodePorts = (isJsonObject(spec) ? portsOf(spec) : []).map(({ nodePort }) => nodePort);
  return {
    address: typeof clusterIP === 'string' ? clusterIP : '',
    nodePorts: nodePorts.filter((port) => typeof port === 'number' && port !== 0) as number[],
  };
}

/** Removes the old node ports of a Service when its new type has none. */
function dropNodePorts(spec: JsonObject, before: JsonObject): void {
  if (hasNodePorts(spec) || !hasNodePorts(before)) {
    return;
  }
  const had = new Set(portsOf(before).map(({ nodePort }) => nodePort));
  for (const port of portsOf(spec)) {
    if (had.has(port['nodePort'])) {
      delete port['nodePort'];
    }
  }
}

function hasNodePorts({ type, allocateLoadBalancerNodePorts }: JsonObject): boolean {
  return type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false);
}

function portsOf({ ports }: JsonObject): JsonObject[] {
  return Array.isArray(ports) ? ports.filter(isJsonObject) : [];
}

function portKey({ protocol, nodePort }: JsonObject): string {
  return `${typeof protocol === 'string' ? protocol : 'TCP'}/${Number(nodePort)}`;
}

function invalidService(name: string, error: FieldError): ApiError {
  return ApiError.invalid({ group: '', kind: 'Service' }, name, [error]);
}
