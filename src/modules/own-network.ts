// What only this machine can reach or read. Policies of people who do not run it must not have it ask there for them.
import { lookup as systemLookup } from 'node:dns';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { LookupFunction } from 'node:net';
import { isAbsolute, relative } from 'node:path';

import { ModuleError } from './errors.ts';
import type { FileReference } from './module-reference.ts';

/** Addresses of the machine itself, and those that only have a meaning beside it: metadata services of clouds are there. */
const OWN_ADDRESSES = new BlockList();
OWN_ADDRESSES.addSubnet('0.0.0.0', 8, 'ipv4');
OWN_ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');
OWN_ADDRESSES.addSubnet('169.254.0.0', 16, 'ipv4');
OWN_ADDRESSES.addAddress('::', 'ipv6');
OWN_ADDRESSES.addAddress('::1', 'ipv6');
OWN_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');
/** Some clouds' metadata service over IPv6 (fd00:ec2::254). */
OWN_ADDRESSES.addAddress('fd00:ec2::254', 'ipv6');

/** Whether a name or an address, as `URL.hostname` has it, is the machine's own or link-local. Resolves no names. */
export function isOwnHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  return isIPv4(host) || isIPv6(host) ? isOwnAddress(host) : host === 'localhost' || host.endsWith('.localhost');
}

function isOwnAddress(address: string): boolean {
  // A link-local address may name its interface.
  const [plain = ''] = address.split('%', 1);
  return OWN_ADDRESSES.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6');
}

/** Whether a file is below a folder; both absolute. Links are followed by whoever reads. */
export function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith('../') && !isAbsolute(way);
}

/** @throws ModuleError `source-forbidden` */
export function assertTenantFile({ path, shown }: FileReference, folder: string | undefined): void {
  if (folder === undefined || !isInside(path, folder)) {
    throw new ModuleError(
      'source-forbidden',
      `policies of a namespace cannot name files of the policy server (${shown}): use https:// or a builtin module, or make it a cluster-wide policy`,
    );
  }
}

/** @throws ModuleError `source-forbidden` */
export function assertForeignHost(hostname: string): void {
  if (isOwnHost(hostname)) {
    throw ownHost(hostname);
  }
}

/**
 * Looks up names for `node:net`, and refuses a host that has an address of the machine's own: what was looked up is what
 * is connected to. Other names than that host, which are those of proxies, are not its affair.
 */
export function foreignLookup(hostname: string, lookup: LookupFunction = systemLookup): LookupFunction {
  return (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (error !== null || first === undefined) {
        callback(error ?? Object.assign(new Error(`no address of ${name}`), { code: 'ENOTFOUND' }), '');
      } else if (name === hostname && addresses.some(({ address }) => isOwnAddress(address))) {
        callback(ownHost(name), '');
      } else if (options.all === true) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

function ownHost(hostname: string): ModuleError {
  return new ModuleError(
    'source-forbidden',
    `policies of a namespace cannot have modules from loopback and link-local addresses, which ${hostname} has: use a server that the policy server reaches over the network`,
  );
}
