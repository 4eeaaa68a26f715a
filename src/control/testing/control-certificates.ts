// Certificates of control ports, as the controller issues them in a cluster: one for controllers, one for each PolicyServer.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CertifiedKey, createAuthority, issueCertificate } from '../../https/index.ts';
import { CONTROLLER_CONTROL_NAME, policyServerControlName } from '../control-names.ts';
import type { ControlTls } from '../control-tls.ts';
import { CONTROL_NAME } from '../replica-protocol.ts';

const DAY_MS = 86_400_000;

export class ControlCertificates {
  readonly #folder: string;
  readonly #authority: CertifiedKey;
  readonly #issued = new Map<string, Promise<ControlTls>>();

  private constructor(folder: string, authority: CertifiedKey) {
    this.#folder = folder;
    this.#authority = authority;
  }

  static async create(folder: string): Promise<ControlCertificates> {
    await mkdir(folder);
    const authority = await createAuthority({ commonName: 'test', ...validity() });
    await writeFile(join(folder, 'ca.crt'), authority.cert);
    return new ControlCertificates(folder, authority);
  }

  ofController(): Promise<ControlTls> {
    return this.#once('controller', [CONTROL_NAME, CONTROLLER_CONTROL_NAME]);
  }

  /** A certificate from before they said whose they are. */
  ofNobody(): Promise<ControlTls> {
    return this.#once('nobody', [CONTROL_NAME]);
  }

  ofPolicyServer(name: string): Promise<ControlTls> {
    return this.#once(`server-${name}`, [CONTROL_NAME, policyServerControlName(name)]);
  }

  /** Processes watch the files, so each is written once. */
  #once(name: string, dnsNames: readonly string[]): Promise<ControlTls> {
    const issued = this.#issued.get(name) ?? this.#issue(name, dnsNames);
    this.#issued.set(name, issued);
    return issued;
  }

  async #issue(name: string, dnsNames: readonly string[]): Promise<ControlTls> {
    const [certFile, keyFile] = [join(this.#folder, `${name}.crt`), join(this.#folder, `${name}.key`)];
    const usages = ['serverAuth', 'clientAuth'] as const;
    const { cert, key } = await issueCertificate(this.#authority, {
      commonName: name,
      usages,
      dnsNames,
      ...validity(),
    });
    await writeFile(keyFile, key);
    await writeFile(certFile, cert);
    return { certFile, keyFile, caFile: join(this.#folder, 'ca.crt') };
  }
}

function validity(): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
}
