// The addresses of a cluster, from its nodes and pods.
import { isJsonObject, textOf, textsOf, valueAt } from '../../values/index.ts';
import { containsCidr, parseBlock } from './cidr.ts';
import type { ClusterFacts } from './feature-uses.ts';

/** Addresses of pods that are compared with each ipBlock: of a large cluster, it is not known whether blocks contain the others. */
const MAX_ADDRESSES = 1_000;

/**
 * Nodes name the CIDRs of their pods, but some network providers give pods addresses of their own choice. So the CIDRs count as
 * those of all pods only while every node has one, and the pods that are known are in them.
 *
 * @param nodes all nodes; undefined when they are not known
 * @param pods some pods
 */
export function readClusterFacts(nodes: readonly unknown[] | undefined, pods: readonly unknown[]): ClusterFacts {
  const inPodNetwork = pods.filter((pod) => valueAt(pod, 'spec', 'hostNetwork') !== true);
  const addresses = [...new Set(inPodNetwork.flatMap(podAddresses))].slice(0, MAX_ADDRESSES);
  const podCidrs = podCidrsOf(nodes ?? []);
  return {
    ...(podCidrs !== undefined && areWithin(addresses, podCidrs) ? { podCidrs } : { podAddresses: addresses }),
    ...(nodes === undefined || nodes.length === 0 ? {} : { nodeCidrs: nodes.flatMap(nodeAddresses) }),
  };
}

/** Undefined unless each node has some. */
function podCidrsOf(nodes: readonly unknown[]): readonly string[] | undefined {
  const ranges = nodes.map((node) => textsOf(valueAt(node, 'spec', 'podCIDRs')));
  return nodes.length === 0 || ranges.some((one) => one.length === 0) ? undefined : ranges.flat();
}

/** False without addresses: nothing shows then that pods have addresses of these CIDRs. */
function areWithin(addresses: readonly string[], cidrs: readonly string[]): boolean {
  const outer = cidrs.flatMap((text) => parseBlock(text) ?? []);
  return (
    addresses.length > 0 &&
    addresses.every((address) => {
      const inner = parseBlock(address);
      return inner !== undefined && outer.some((one) => containsCidr(one, inner));
    })
  );
}

function podAddresses(pod: unknown): readonly string[] {
  return addressesAt(pod, 'podIPs', 'ip');
}

function nodeAddresses(node: unknown): readonly string[] {
  return addressesAt(node, 'addresses', 'address').filter((text) => /^[\d.]+$|:/.test(text));
}

/** The texts of a field of the entries of a list in the status. */
function addressesAt(object: unknown, list: string, field: string): readonly string[] {
  const entries = valueAt(object, 'status', list);
  return (Array.isArray(entries) ? entries : []).flatMap((entry) => {
    const text = isJsonObject(entry) ? textOf(entry[field]) : '';
    return text === '' ? [] : [text];
  });
}
