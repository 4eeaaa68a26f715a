// Namespaced policies must not read files of the policy server or addresses that only it can reach (SSRF).
import { lookup as systemLookup } from 'node:dns';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { LookupFunction } from 'node:net';
import { isAbsolute, relative } from 'node:path';

import { ModuleError } from './errors.ts';
import type { FileReference } from './module-reference.ts';

/** Loopback and link-local addresses; metadata services of clouds use the latter. */
const LOCAL_ADDRESSES = new BlockList();
LOCAL_ADDRESSES.addSubnet('0.0.0.0', 8, 'ipv4');
LOCAL_ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');
LOCAL_ADDRESSES.addSubnet('169.254.0.0', 16, 'ipv4');
LOCAL_ADDRESSES.addAddress('::', 'ipv6');
LOCAL_ADDRESSES.addAddress('::1', 'ipv6');
LOCAL_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
LOCAL_ADDRESSES.addAddress('fd00:ec2::254', 'ipv6');

/** Whether a `URL.hostname` is `localhost`, or a loopback or link-local address. Resolves no names. */
export function isLocalHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  return isIPv4(host) || isIPv6(host) ? isLocalAddress(host) : host === 'localhost' || host.endsWith('.localhost');
}

function isLocalAddress(address: string): boolean {
  // A link-local address may have a zone (fe80::1%eth0).
  const [plain = ''] = address.split('%', 1);
  return LOCAL_ADDRESSES.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6');
}

/** Whether a file is below a folder; both absolute. Symbolic links are not resolved. */
export function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith('../') && !isAbsolute(way);
}

/** @throws ModuleError `source-forbidden` */
export function assertTenantFile({ path, shown }: FileReference, folder: string | undefined): void {
  if (folder === undefined || !isInside(path, folder)) {
    throw new ModuleError(
      'source-forbidden',
      `namespaced policies cannot name files of the policy server (${shown}): use https:// or a builtin module, or make it a cluster-wide policy`,
    );
  }
}

/** @throws ModuleError `source-forbidden` */
export function assertRemoteHost(hostname: string): void {
  if (isLocalHost(hostname)) {
    throw localHostError(hostname);
  }
}

/**
 * A lookup for `node:net` that refuses `hostname` when it has a loopback or link-local address. It checks the very addresses
 * that are connected to, so DNS rebinding does not get around it. Other names, those of proxies, are not checked.
 */
export function remoteLookup(hostname: string, lookup: LookupFunction = systemLookup): LookupFunction {
  return (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (error !== null || first === undefined) {
        callback(error ?? Object.assign(new Error(`no address of ${name}`), { code: 'ENOTFOUND' }), '');
      } else if (name === hostname && addresses.some(({ address }) => isLocalAddress(address))) {
        callback(localHostError(name), '');
      } else if (options.all === true) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

function localHostError(hostname: string): ModuleError {
  return new ModuleError(
    'source-forbidden',
    `namespaced policies cannot have modules from loopback and link-local addresses, which ${hostname} has: use a server that the policy server reaches over the network`,
  );
}
