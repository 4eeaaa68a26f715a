// Addresses of Services: nothing listens at them, but clients look at them (k8s.io/kubernetes, pkg/registry/core/service).
import { invalid, isJsonObject } from '../../resources/index.ts';
import type { FieldError, JsonObject, KubernetesObject } from '../../resources/index.ts';
import { ApiError } from '../api-error.ts';
import type { KindWrite } from './kind-behaviour.ts';
import type { ObjectStore } from './store/object-store.ts';

/** 10.96.0.0/16: what kubeadm begins with, and enough for all services of one machine. */
const PREFIX = '10.96';
const LAST_ADDRESS = 256 * 256 - 2;

/** Of the Service `kubernetes`, which every cluster has. */
export const KUBERNETES_SERVICE_IP = `${PREFIX}.0.1`;

/** Kubernetes' range of node ports. */
const FIRST_NODE_PORT = 30_000;
const LAST_NODE_PORT = 32_767;

/** Gives Services addresses and node ports that no other has. */
export class ServiceAddresses {
  readonly #store: ObjectStore;
  #nextAddress = 2;
  #nextNodePort = FIRST_NODE_PORT;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  readonly behave = ({ object, old, subresource }: KindWrite): void => {
    if (subresource !== undefined || !isJsonObject(object['spec'])) {
      return;
    }
    const spec = object['spec'];
    const before = isJsonObject(old?.['spec']) ? old['spec'] : {};
    if (spec['type'] === 'ExternalName') {
      for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy']) {
        delete spec[field];
      }
      return;
    }
    this.#giveAddress(object.metadata['name'], spec, before, old);
    this.#giveNodePorts(spec, before);
  };

  #giveAddress(name: unknown, spec: JsonObject, before: JsonObject, old: KubernetesObject | undefined): void {
    const given = spec['clusterIP'] ?? before['clusterIP'];
    const asked = typeof given === 'string' ? given : '';
    if (asked !== '' && asked !== 'None' && asked !== before['clusterIP']) {
      const isTaken = this.#services(old).some(({ clusterIP }) => clusterIP === asked);
      if (isTaken) {
        throw refused(
          name,
          invalid('spec.clusterIPs', [asked], 'failed to allocate IP: provided IP is already allocated'),
        );
      }
    }
    const address = asked === '' ? this.#freeAddress(old) : asked;
    spec['clusterIP'] = address;
    spec['clusterIPs'] = [address];
    spec['ipFamilies'] ??= before['ipFamilies'] ?? ['IPv4'];
    spec['ipFamilyPolicy'] ??= before['ipFamilyPolicy'] ?? 'SingleStack';
  }

  #giveNodePorts(spec: JsonObject, before: JsonObject): void {
    const wantsThem =
      spec['type'] === 'NodePort' ||
      (spec['type'] === 'LoadBalancer' && spec['allocateLoadBalancerNodePorts'] !== false);
    if (!wantsThem || !Array.isArray(spec['ports'])) {
      return;
    }
    const previous = Array.isArray(before['ports']) ? before['ports'].filter(isJsonObject) : [];
    const given = spec['ports'].filter(isJsonObject);
    const taken = new Set(this.#services(undefined).flatMap(({ nodePorts }) => nodePorts));
    for (const port of given) {
      if (typeof port['nodePort'] === 'number' && port['nodePort'] !== 0) {
        taken.add(port['nodePort']);
      }
    }
    for (const port of given) {
      if (typeof port['nodePort'] === 'number' && port['nodePort'] !== 0) {
        continue;
      }
      const same = previous.find((one) => one['port'] === port['port'] && one['protocol'] === port['protocol']);
      const nodePort = same?.['nodePort'] ?? this.#freeNodePort(taken);
      if (typeof nodePort === 'number') {
        port['nodePort'] = nodePort;
        taken.add(nodePort);
      }
    }
  }

  #freeAddress(old: KubernetesObject | undefined): string {
    const taken = new Set(this.#services(old).map(({ clusterIP }) => clusterIP));
    for (let tries = 0; tries < LAST_ADDRESS; tries++) {
      const number = this.#nextAddress;
      this.#nextAddress = number === LAST_ADDRESS ? 2 : number + 1;
      const address = `${PREFIX}.${number >>> 8}.${number & 0xff}`;
      if (!taken.has(address)) {
        return address;
      }
    }
    throw ApiError.internal('failed to allocate a serviceIP: range is full');
  }

  #freeNodePort(taken: ReadonlySet<number>): number {
    for (let tries = FIRST_NODE_PORT; tries <= LAST_NODE_PORT; tries++) {
      const port = this.#nextNodePort;
      this.#nextNodePort = port === LAST_NODE_PORT ? FIRST_NODE_PORT : port + 1;
      if (!taken.has(port)) {
        return port;
      }
    }
    throw ApiError.internal('failed to allocate a nodePort: range is full');
  }

  /** What the other Services have. */
  #services(except: KubernetesObject | undefined): { clusterIP: string; nodePorts: number[] }[] {
    return [...this.#store.collection('services').list()]
      .filter(({ metadata }) => metadata.uid !== except?.metadata.uid)
      .map(({ spec }) => {
        const { clusterIP = '', ports = [] } = (spec ?? {}) as {
          clusterIP?: string;
          ports?: readonly { nodePort?: number }[];
        };
        return { clusterIP, nodePorts: ports.flatMap(({ nodePort = 0 }) => (nodePort === 0 ? [] : [nodePort])) };
      });
  }
}

function refused(name: unknown, error: FieldError): ApiError {
  return ApiError.invalid({ group: '', kind: 'Service' }, typeof name === 'string' ? name : '', [error]);
}
