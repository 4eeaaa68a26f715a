import { tlsOptions } from '../../https/index.ts';
import { errorText } from '../../values/index.ts';
import { parseCertificates } from './parsed-certificate.ts';

/**
 * A message why a server cannot start with the content of a Secret; undefined if it can. Does not check whether clients trust
 * the certificate.
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
  return parseCertificates(texts.get('ca.crt') ?? '').length > 0 ? undefined : 'ca.crt contains no certificate';
}
