// The server's certificate: read from files, validated before use, replaced at run time when the files change.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { HttpsError } from './errors.ts';
import { type Contents, FileWatch } from '../files/index.ts';
import { errorText } from '../values/index.ts';

/** Files of the certificate and its key, and of CAs for clients. */
export interface TlsFiles {
  /** PEM file with the certificate, then its intermediates. */
  readonly certFile: string;
  /** PEM file with the private key of the certificate. */
  readonly keyFile: string;
  /** PEM files of the CAs for client certificates. Default: none, no client certificate is required. */
  readonly clientCaFiles?: readonly string[];
}

/** Converts the files' contents to options of node:tls. Rejects certificates with which every handshake would fail. */
export function tlsOptions(files: TlsFiles, contents: Contents): SecureContextOptions {
  const [cert, key, ...ca] = contents;
  if (cert === undefined || key === undefined) {
    throw new HttpsError('tls-invalid', `expected a certificate and a key, got ${contents.length} files`);
  }
  try {
    const certificate = new X509Certificate(cert);
    if (!certificate.checkPrivateKey(createPrivateKey(key))) {
      throw new Error(`the key in ${files.keyFile} does not belong to the certificate`);
    }
    const options: SecureContextOptions = { cert, key, minVersion: 'TLSv1.2', ...(ca.length > 0 ? { ca } : {}) };
    createSecureContext(options);
    return options;
  } catch (error) {
    const reason = errorText(error);
    throw new HttpsError(
      'tls-invalid',
      `the certificate in ${files.certFile} cannot be used: ${reason}. Expected PEM files of one certificate and its key.`,
      { cause: error },
    );
  }
}

/** Receives the changes of {@link watchTls}. */
export interface TlsListener {
  /** New options for the server. */
  reloaded(options: SecureContextOptions): void;
  /** The files are invalid; the current certificate stays. */
  failed(error: Error): void;
}

/**
 * Reads the files, returns the first options, and reports every later change; `check` reads them immediately.
 * @throws HttpsError 'tls-invalid' when the first read is invalid.
 */
export async function watchTls(
  files: TlsFiles,
  listener: TlsListener,
): Promise<{ options: SecureContextOptions; check: () => Promise<void>; stop: () => void }> {
  let first: SecureContextOptions | undefined;
  let firstError: Error | undefined;
  const watch = new FileWatch([files.certFile, files.keyFile, ...(files.clientCaFiles ?? [])], {
    changed(contents) {
      const options = tlsOptions(files, contents);
      if (first === undefined) {
        first = options;
      } else {
        listener.reloaded(options);
      }
    },
    failed(error) {
      if (first === undefined) {
        firstError = error;
      } else {
        listener.failed(error);
      }
    },
  });
  await watch.start();
  if (first === undefined) {
    watch.stop();
    throw firstError instanceof HttpsError
      ? firstError
      : new HttpsError('tls-invalid', `cannot read the certificate: ${firstError?.message ?? 'no content'}`, {
          cause: firstError,
        });
  }
  return { options: first, check: () => watch.check(), stop: () => watch.stop() };
}
