// Protection from DNS rebinding: a web page can make its own domain name resolve to 127.0.0.1, and then read answers of
// a loopback port. The Host header still contains the page's name.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { sendError } from './http-body.ts';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * The handler for a server that listens on `host`. On a loopback address, requests whose Host header names anything but a
 * loopback address or `localhost` get 421 (Misdirected Request).
 */
export function loopbackNamesOnly(host: string, handler: RequestListener): RequestListener {
  if (!isLoopback(host)) {
    return handler;
  }
  return (request: IncomingMessage, response: ServerResponse) => {
    const named = hostnameOf(request.headers.host);
    if (named === undefined || isLoopback(named)) {
      handler(request, response);
      return;
    }
    request.resume();
    sendError(response, 421, `this port answers loopback names only, such as localhost: got Host ${named}`);
  };
}

/** Whether a host name or an address without brackets is this machine's loopback. Resolves no names. */
function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/\.$/, '').toLowerCase();
  if (isIPv4(host) || isIPv6(host)) {
    return LOOPBACK.check(host, isIPv4(host) ? 'ipv4' : 'ipv6');
  }
  // RFC 6761, section 6.3: names below localhost are loopback names.
  return host === 'localhost' || host.endsWith('.localhost');
}

/** The name in a Host header; undefined if there is none, as in HTTP/1.0, which no browser speaks. */
function hostnameOf(header: string | undefined): string | undefined {
  return header?.replace(/:\d*$/, '').replace(/^\[|\]$/g, '');
}
