// The server of a port for reviews: HTTP or HTTPS, with certificates that are watched.
import type { RequestListener, Server } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Logger } from '../log/index.ts';
import type { ConnectionState } from './connection-limit.ts';
import { createPort, PORT_LIMITS } from './ports.ts';
import { type TlsFiles, watchTls } from './tls.ts';

/** Timeouts for clients. Milliseconds. */
export interface ClientTimeouts {
  /** For the TLS handshake, and for the headers of a request. Default: 10 s. */
  readonly headersMs?: number;
  /** For a whole request. Default: 30 s, the longest that a webhook may take. */
  readonly requestMs?: number;
  /** Interval of the check for slow clients. Default: 2 s. */
  readonly checkMs?: number;
}

export interface AdmissionServerOptions {
  readonly handler: RequestListener;
  /** Certificate files, watched. Default: plain HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly timeouts: ClientTimeouts | undefined;
  /** Called for each connection that is closed because the server is full. */
  readonly connectionClosed?: (state: ConnectionState) => void;
  readonly log: Logger;
}

/** A server before it listens. */
export interface AdmissionServer {
  readonly server: Server | SecureServer;
  /** The watch of its certificate files, if any. */
  readonly tls: { readonly check: () => Promise<void>; readonly stop: () => void } | undefined;
}

/** @throws HttpsError 'tls-invalid' */
export async function createAdmissionServer(options: AdmissionServerOptions): Promise<AdmissionServer> {
  const { handler, tls: files, timeouts = {}, connectionClosed, log } = options;
  const { headersMs, requestMs, checkMs } = { ...PORT_LIMITS.webhook, ...timeouts };
  const shared = { handler, connectionClosed, limits: { handshakeMs: headersMs, headersMs, requestMs, checkMs } };
  if (files === undefined) {
    return { server: createPort('webhook', shared), tls: undefined };
  }
  const { options: certificates, ...watch } = await watchTls(files, {
    reloaded: (changed) => {
      server.setSecureContext(changed);
      log.info({ file: files.certFile }, 'certificate reloaded');
    },
    failed: (error) => log.error({ error: error.message }, 'certificate not reloaded, the old one stays in use'),
  });
  const isMutual = (files.clientCaFiles ?? []).length > 0;
  const tls = { ...certificates, requestCert: isMutual, rejectUnauthorized: isMutual };
  const server = createPort('webhook', { ...shared, tls });
  return { server, tls: watch };
}
