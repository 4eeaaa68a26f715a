import { tlsOptions } from '../../https/index.ts';
import { errorText } from '../../values/index.ts';
import { parseCertificates } from './parsed-certificate.ts';

/**
 * Why nothing can be served by what a Secret of a certificate holds: what ends a process that begins with it. Undefined when it
 * can be. Whether anybody believes it is another matter, and for who looks after certificates.
 */
export function servedCertificateFault(texts: ReadonlyMap<string, string>): string | undefined {
  const [certFile, keyFile] = ['tls.crt', 'tls.key'];
  try {
    tlsOptions(
      { certFile, keyFile },
      [certFile, keyFile].map((key) => Buffer.from(texts.get(key) ?? '')),
    );
  } catch (error) {
    return errorText(error);
  }
  return parseCertificates(texts.get('ca.crt') ?? '').length > 0 ? undefined : 'ca.crt holds no certificate';
}
