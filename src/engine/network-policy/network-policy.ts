import { Selector } from '../../resources/index.ts';
import { readLabelSelector } from '../cel-policy/label-selector.ts';
import type { FieldProblem } from '../values/field-problem.ts';
import { describeValue, FieldReader, fieldPathText } from '../values/field-reader.ts';
import type { FieldFault } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { shortened, textOf, valueAt } from '../../values/index.ts';
import { parseCidr } from './cidr.ts';
import type { Cidr } from './cidr.ts';

export type Direction = 'Ingress' | 'Egress';

export interface IPBlock {
  readonly path: string;
  readonly text: string;
  readonly cidr: Cidr;
  readonly except: readonly { readonly path: string; readonly text: string; readonly cidr: Cidr }[];
}

/** A peer: an ipBlock, or selectors. */
export interface Peer {
  readonly path: string;
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: IPBlock;
}

export interface PortEntry {
  readonly path: string;
  readonly protocol: string;
  readonly port?: number | string;
  readonly endPort?: number;
}

/** A rule of an effective direction. */
export interface Rule {
  readonly path: string;
  readonly direction: Direction;
  /** Empty: everybody. */
  readonly peers: readonly Peer[];
  /** Empty: all ports. */
  readonly ports: readonly PortEntry[];
}

/** Something of a policy that this version cannot read, so that nothing can be said about it. */
interface Unread {
  readonly path: string;
  readonly message: string;
}

/** A NetworkPolicy with the defaults of API servers. */
export interface NetworkPolicy {
  readonly namespace: string;
  readonly name: string;
  readonly podSelector: Selector;
  /** The directions in which it isolates its pods, with the field that says so. */
  readonly directions: ReadonlyMap<Direction, string>;
  /** The rules of these directions. */
  readonly rules: readonly Rule[];
  /** Rules of a direction that `policyTypes` does not name. */
  readonly rulesWithoutEffect: readonly string[];
  readonly unread: readonly Unread[];
  /** How many `endPort` fields `kubectl apply` sent that the object lacks. */
  readonly droppedEndPorts: number;
}

/** Most parts that are reported as unread. */
const MAX_UNREAD = 20;
/**
 * Rules, peers, ports, exceptions, and requirements and values of selectors that are read of a policy: more than the lists of addresses
 * that cloud providers publish. What a provider does with the others is unknown. Each takes some microseconds wherever the policy is
 * judged, and a policy of 1.5 MB, the most that API servers store, has up to 500,000.
 */
const MAX_PARTS = 10_000;
const PROTOCOLS: readonly string[] = ['TCP', 'UDP', 'SCTP'];
/** `extensions/v1beta1`, which API servers before 1.16 serve, has the same fields. */
const API_VERSIONS: readonly string[] = ['networking.k8s.io/v1', 'extensions/v1beta1'];

/** Whether the object is a NetworkPolicy of Kubernetes, of any version. */
export function isNetworkPolicy(object: unknown): object is JsonObject {
  const { apiVersion, kind } = isJsonObject(object) ? object : {};
  return kind === 'NetworkPolicy' && /^(?:networking\.k8s\.io|extensions)\//.test(textOf(apiVersion));
}

/** Reads a NetworkPolicy, which may have any shape. Never throws. @param namespace of an object that names none */
export function readNetworkPolicy(object: JsonObject, namespace = 'default'): NetworkPolicy {
  return new PolicyReader(object).read(namespace);
}

class PolicyReader {
  readonly #object: JsonObject;
  readonly #unread: Unread[] = [];
  readonly #problems: FieldProblem[] = [];
  #partsLeft = MAX_PARTS;
  /** Whether some parts are not read. */
  #isTooMuch = false;

  constructor(object: JsonObject) {
    this.#object = object;
  }

  read(defaultNamespace: string): NetworkPolicy {
    const { apiVersion, metadata } = this.#object;
    if (!API_VERSIONS.includes(textOf(apiVersion))) {
      this.#add('apiVersion', `this version of the API is not known: ${describeValue(apiVersion)}`);
    }
    const meta = isJsonObject(metadata) ? metadata : {};
    const written = this.#object['spec'];
    const spec = new FieldReader(written ?? {}, (fault) => this.#fault(fault), ['spec']);
    spec.knownKeys(['podSelector', 'policyTypes', 'ingress', 'egress']);
    const podSelector = this.#selector(spec, 'podSelector') ?? Selector.EVERYTHING;
    const [ingress, egress] = [this.#rules(spec, 'Ingress'), this.#rules(spec, 'Egress')];
    const directions = this.#directions(spec, egress.length > 0);
    const all = [...ingress, ...egress];
    return {
      namespace: textOf(meta['namespace']) || defaultNamespace,
      name: textOf(meta['name']) || textOf(meta['generateName']),
      podSelector,
      directions,
      rules: all.filter(({ direction }) => directions.has(direction)),
      rulesWithoutEffect: all.filter(({ direction }) => !directions.has(direction)).map(({ path }) => path),
      unread: [...this.#unread, ...this.#problems.map(({ field, message }) => ({ path: field, message }))].slice(
        0,
        MAX_UNREAD,
      ),
      droppedEndPorts: this.#isTooMuch ? 0 : droppedEndPorts(meta, all),
    };
  }

  /** Without policyTypes: Ingress, and Egress if there are rules for it. */
  #directions(spec: FieldReader, hasEgress: boolean): ReadonlyMap<Direction, string> {
    const types = spec.texts('policyTypes');
    if (types.length === 0) {
      return new Map<Direction, string>([
        ['Ingress', 'spec.ingress'],
        ...(hasEgress ? ([['Egress', 'spec.egress']] as const) : []),
      ]);
    }
    const directions = new Map<Direction, string>();
    for (const [index, type] of types.entries()) {
      const path = `spec.policyTypes[${index}]`;
      if (type === 'Ingress' || type === 'Egress') {
        directions.set(type, directions.get(type) ?? path);
      } else {
        this.#add(path, `this type is not known: ${describeValue(type)}`);
      }
    }
    return directions;
  }

  #rules(spec: FieldReader, direction: Direction): readonly Rule[] {
    const [key, peers] = direction === 'Ingress' ? ['ingress', 'from'] : ['egress', 'to'];
    // One more than are read, which shows that there are more.
    return spec.each(key, this.#partsLeft + 1).flatMap((rule, index) => {
      if (this.#takeParts(1, spec, key) === 0 && index > 0) {
        return [];
      }
      rule.knownKeys([peers, 'ports']);
      return {
        path: fieldPathText(rule.path),
        direction,
        peers: this.#some(rule, peers).map((peer) => this.#peer(peer)),
        ports: this.#some(rule, 'ports').map((port) => this.#port(port)),
      };
    });
  }

  #peer(peer: FieldReader): Peer {
    peer.knownKeys(['podSelector', 'namespaceSelector', 'ipBlock']);
    const podSelector = this.#selector(peer, 'podSelector');
    const namespaceSelector = this.#selector(peer, 'namespaceSelector');
    const block = peer.inside('ipBlock');
    const ipBlock = block && this.#ipBlock(block);
    const path = fieldPathText(peer.path);
    if (podSelector === undefined && namespaceSelector === undefined && block === undefined) {
      this.#add(path, 'expected podSelector, namespaceSelector or ipBlock, got none of them');
    }
    if (block !== undefined && (podSelector ?? namespaceSelector) !== undefined) {
      this.#add(path, 'expected either ipBlock or selectors, got both');
    }
    return {
      path,
      ...(podSelector === undefined ? {} : { podSelector }),
      ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
      ...(ipBlock === undefined ? {} : { ipBlock }),
    };
  }

  #ipBlock(block: FieldReader): IPBlock | undefined {
    block.knownKeys(['cidr', 'except']);
    const text = block.requiredText('cidr');
    const cidr = this.#cidr(block.at('cidr'), text);
    const except = block
      .texts('except')
      .slice(0, this.#take(block, 'except'))
      .flatMap((one, index) => {
        const path = `${block.at('except')}[${index}]`;
        const part = this.#cidr(path, one);
        return part === undefined ? [] : [{ path, text: one, cidr: part }];
      });
    return cidr && { path: fieldPathText(block.path), text, cidr, except };
  }

  #cidr(path: string, text: string): Cidr | undefined {
    const cidr = parseCidr(text);
    if (cidr === undefined) {
      this.#add(path, `expected a CIDR such as 10.0.0.0/8, got ${describeValue(text)}`);
    }
    return cidr;
  }

  #port(entry: FieldReader): PortEntry {
    entry.knownKeys(['protocol', 'port', 'endPort']);
    const protocol = entry.text('protocol') ?? 'TCP';
    if (!PROTOCOLS.includes(protocol)) {
      this.#add(entry.at('protocol'), `this protocol is not known: ${describeValue(protocol)}`);
    }
    const port = this.#portValue(entry);
    const endPort = entry.integer('endPort');
    if (endPort !== undefined && (typeof port !== 'number' || endPort < port || endPort > 65_535)) {
      this.#add(entry.at('endPort'), 'expected a number from port to 65535, beside a numeric port');
    }
    return {
      path: fieldPathText(entry.path),
      protocol,
      ...(port === undefined ? {} : { port }),
      ...(endPort === undefined ? {} : { endPort }),
    };
  }

  #portValue(entry: FieldReader): number | string | undefined {
    const port = entry.value('port');
    const isValid =
      typeof port === 'number'
        ? Number.isInteger(port) && port >= 1 && port <= 65_535
        : typeof port === 'string' && port !== '';
    if (port !== undefined && !isValid) {
      this.#add(entry.at('port'), `expected a number from 1 to 65535 or a name, got ${describeValue(port)}`);
    }
    return typeof port === 'number' || typeof port === 'string' ? port : undefined;
  }

  #selector(owner: FieldReader, key: string): Selector | undefined {
    const parts = partsOf(owner.value(key));
    return this.#takeParts(parts, owner, key) < parts
      ? Selector.NOTHING
      : readLabelSelector(owner, key, this.#problems);
  }

  /** The mappings of a list, as far as there are not too many. */
  #some(owner: FieldReader, key: string): readonly FieldReader[] {
    return owner.each(key, this.#take(owner, key));
  }

  /** How many elements of a list are read; at least one, since an empty list means something else. */
  #take(owner: FieldReader, key: string): number {
    const list = owner.value(key);
    const count = Array.isArray(list) ? list.length : 0;
    return Math.max(this.#takeParts(count, owner, key), Math.min(count, 1));
  }

  #takeParts(count: number, owner: FieldReader, key: string): number {
    const taken = Math.min(count, this.#partsLeft);
    this.#partsLeft -= taken;
    if (taken < count && !this.#isTooMuch) {
      this.#isTooMuch = true;
      this.#add(owner.at(key), TOO_MANY);
    }
    return taken;
  }

  #fault({ path, message, code }: FieldFault): void {
    this.#add(fieldPathText(path), code === 'unknown-key' ? 'this field is not known' : message);
  }

  #add(path: string, message: string): void {
    this.#unread.push({ path: shortened(path, MAX_PATH), message });
  }
}

const TOO_MANY = `the policy has more than ${MAX_PARTS} rules, peers, ports, exceptions, labels and values: the others are not examined`;

/** The requirements of a selector, and their values. */
function partsOf(selector: JsonValue | undefined): number {
  const labels = valueAt(selector, 'matchLabels');
  const expressions = valueAt(selector, 'matchExpressions');
  const requirements = Array.isArray(expressions) ? expressions : [];
  const values = requirements.map((one) => valueAt(one, 'values')).map((one) => (Array.isArray(one) ? one.length : 0));
  return values.reduce((sum, count) => sum + 1 + count, isJsonObject(labels) ? Object.keys(labels).length : 0);
}

/** Characters of a path in a message, whose keys come from outside. */
const MAX_PATH = 120;
/** The key of `kubectl apply`, which holds what was sent. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** API servers from 1.21 to 1.24 drop `endPort` while its feature gate is off. */
function droppedEndPorts(metadata: JsonObject, rules: readonly Rule[]): number {
  const annotations = isJsonObject(metadata['annotations']) ? metadata['annotations'] : {};
  const sent = textOf(annotations[LAST_APPLIED]).split('"endPort":').length - 1;
  const kept = rules.flatMap(({ ports }) => ports).filter(({ endPort }) => endPort !== undefined).length;
  return Math.max(0, sent - kept);
}
