import { BlockList, isIP } from 'node:net';
import type { CheckedValue } from './checked-value.ts';

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

/** What API servers refuse in the spec of a NetworkPolicy that has the right types, in their order. */
export function checkNetworkPolicy(object: CheckedValue): void {
  const spec = object.at('spec');
  spec.at('podSelector').labelSelector();
  for (const [direction, peers] of [['ingress', 'from'] as const, ['egress', 'to'] as const]) {
    for (const rule of spec.at(direction).items) {
      rule.at('ports').items.forEach(checkPolicyPort);
      rule.at(peers).items.forEach(checkPeer);
    }
  }
  const types = spec.at('policyTypes');
  if (types.items.length > 2) {
    types.invalid('may not specify more than two policyTypes');
  }
  for (const type of types.items) {
    type.oneOf(['Ingress', 'Egress']);
  }
}

function checkPolicyPort(port: CheckedValue): void {
  const protocol = port.at('protocol');
  if (protocol.isSet && !PROTOCOLS.includes(protocol.text)) {
    protocol.oneOf(['TCP', 'UDP', 'SCTP']);
  }
  const [from, to] = [port.at('port'), port.at('endPort')];
  if (from.isSet) {
    from.portOrName();
  }
  if (to.isSet) {
    if (!from.isSet) {
      to.invalid('may not be specified when `port` is not specified');
    } else if (typeof from.value === 'string') {
      to.invalid('may not be specified when `port` is non-numeric');
    } else if ((to.number ?? 0) < (from.number ?? 0)) {
      // API servers print the value of `port` in this message.
      to.invalid('must be greater than or equal to `port`', from.value);
    }
    to.port();
  }
}

function checkPeer(peer: CheckedValue): void {
  const [pods, namespaces, block] = [peer.at('podSelector'), peer.at('namespaceSelector'), peer.at('ipBlock')];
  pods.labelSelector();
  namespaces.labelSelector();
  if (block.isSet) {
    checkBlock(block);
    if (pods.isSet || namespaces.isSet) {
      peer.forbidden('may not specify both ipBlock and another peer');
    }
  } else if (!pods.isSet && !namespaces.isSet) {
    peer.required('must specify a peer');
  }
}

const NOT_A_BLOCK = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

function checkBlock(block: CheckedValue): void {
  const cidr = block.at('cidr');
  const range = cidrOf(cidr.text);
  if (!cidr.needed()) {
    return;
  }
  if (range === undefined) {
    cidr.invalid(NOT_A_BLOCK);
    return;
  }
  for (const except of block.at('except').items) {
    const inner = cidrOf(except.text);
    if (inner === undefined) {
      except.invalid(NOT_A_BLOCK);
    } else if (!isWithin(inner, range)) {
      except.invalid('must be a strict subset of `cidr`');
    }
  }
}

interface Cidr {
  readonly address: string;
  readonly bits: number;
  readonly family: 'ipv4' | 'ipv6';
}

function cidrOf(text: string): Cidr | undefined {
  const [address = '', bits = '', ...more] = text.split('/');
  const version = isIP(address);
  const isBlock = version !== 0 && more.length === 0 && /^\d{1,3}$/.test(bits);
  return !isBlock || Number(bits) > (version === 4 ? 32 : 128)
    ? undefined
    : { address, bits: Number(bits), family: version === 4 ? 'ipv4' : 'ipv6' };
}

function isWithin(inner: Cidr, outer: Cidr): boolean {
  const list = new BlockList();
  list.addSubnet(outer.address, outer.bits, outer.family);
  return inner.family === outer.family && inner.bits > outer.bits && list.check(inner.address, inner.family);
}
