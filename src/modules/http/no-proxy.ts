import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'https:': '443', 'http:': '80' };

/**
 * Whether a host needs no proxy, by the rules of Go programs, because Node's own know neither networks nor subdomains.
 * @param noProxy like the variable `NO_PROXY`: names, which stand for their subdomains as well, addresses and networks
 *   (`10.0.0.0/8`), each but the latter with an optional port, separated by commas; or `*`
 */
export function needsNoProxy({ protocol, hostname, port }: URL, noProxy: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  const place: Place = { host, port: port === '' ? (DEFAULT_PORTS[protocol] ?? '') : port };
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => entry !== '' && includes(entry, place));
}

interface Place {
  readonly host: string;
  readonly port: string;
}

function includes(entry: string, { host, port }: Place): boolean {
  if (entry === '*') {
    return true;
  }
  if (entry.includes('/')) {
    return isInNetwork(host, entry);
  }
  if (isIP(entry) !== 0) {
    return isSameAddress(host, entry);
  }
  const [, name = '', onlyPort] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  const plain = name.replace(/^\[|\]$/g, '').replace(/^\*?\./, '');
  const isNamed = isIP(plain) === 0 ? host === plain || host.endsWith(`.${plain}`) : isSameAddress(host, plain);
  return isNamed && (onlyPort === undefined || onlyPort === port);
}

function isSameAddress(host: string, address: string): boolean {
  return isIP(host) !== 0 && ipaddr.process(host).toString() === ipaddr.process(address).toString();
}

function isInNetwork(host: string, network: string): boolean {
  return (
    isIP(host) !== 0 &&
    ipaddr.isValidCIDR(network) &&
    ipaddr.subnetMatch(ipaddr.process(host), { network: [ipaddr.parseCIDR(network)] }, '') === 'network'
  );
}
