import { age, firstThree, labelsText, nameOf, selectorText } from './table-cells.ts';
import type { Cells } from './table-cells.ts';

interface LoadBalancer {
  readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[];
}

interface Service {
  readonly spec?: {
    readonly type?: string;
    readonly clusterIPs?: readonly string[];
    readonly externalIPs?: readonly string[];
    readonly externalName?: string;
    readonly ports?: readonly { readonly port?: number; readonly nodePort?: number; readonly protocol?: string }[];
    readonly selector?: Readonly<Record<string, string>>;
  };
  readonly status?: { readonly loadBalancer?: LoadBalancer };
}

export const serviceCells: Cells = (object, now) => {
  const service = object as Service;
  const { type = '', clusterIPs, ports, selector } = service.spec ?? {};
  const portTexts = ports?.map(({ port, nodePort = 0, protocol }) =>
    nodePort > 0 ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
  );
  return [
    nameOf(object),
    type,
    clusterIPs?.[0] ?? '<none>',
    externalAddress(service),
    portTexts?.join(',') || '<none>',
    age(object, now),
    labelsText(selector),
  ];
};

function externalAddress({ spec, status }: Service): string {
  const { externalIPs = [], externalName = '' } = spec ?? {};
  switch (spec?.type) {
    case 'ClusterIP':
    case 'NodePort':
      return externalIPs.join(',') || '<none>';
    case 'LoadBalancer':
      return [...loadBalancerAddresses(status?.loadBalancer), ...externalIPs].join(',') || '<pending>';
    case 'ExternalName':
      return externalName;
    default:
      return '<unknown>';
  }
}

function loadBalancerAddresses(loadBalancer: LoadBalancer | undefined): readonly string[] {
  const addresses = (loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip || hostname || []);
  return [...new Set(addresses)].sort();
}

interface Ingress {
  readonly spec?: {
    readonly ingressClassName?: string;
    readonly rules?: readonly { readonly host?: string }[];
    readonly tls?: readonly unknown[];
  };
  readonly status?: { readonly loadBalancer?: LoadBalancer };
}

export const ingressCells: Cells = (object, now) => {
  const { spec, status } = object as Ingress;
  return [
    nameOf(object),
    spec?.ingressClassName ?? '<none>',
    hostsText(spec?.rules ?? []),
    loadBalancerAddresses(status?.loadBalancer).join(','),
    (spec?.tls?.length ?? 0) > 0 ? '80, 443' : '80',
    age(object, now),
  ];
};

/** The first three hosts. As in API servers, the number of others includes rules without a host. */
function hostsText(rules: readonly { readonly host?: string }[]): string {
  const hosts: string[] = [];
  for (const { host = '' } of rules) {
    if (hosts.length === 3) {
      return `${hosts.join(',')} + ${rules.length - 3} more...`;
    }
    if (host !== '') {
      hosts.push(host);
    }
  }
  return hosts.join(',') || '*';
}

interface IngressClass {
  readonly spec?: {
    readonly controller?: string;
    readonly parameters?: { readonly kind?: string; readonly apiGroup?: string; readonly name?: string };
  };
}

export const ingressClassCells: Cells = (object, now) => {
  const { controller = '', parameters } = (object as IngressClass).spec ?? {};
  const group = parameters?.apiGroup === undefined ? '' : `.${parameters.apiGroup}`;
  const text = parameters === undefined ? '<none>' : `${parameters.kind}${group}/${parameters.name}`;
  return [nameOf(object), controller, text, age(object, now)];
};

export const networkPolicyCells: Cells = (object, now) => {
  const { spec } = object as { readonly spec?: { readonly podSelector?: unknown } };
  return [nameOf(object), selectorText(spec?.podSelector), age(object, now)];
};

interface Endpoints {
  readonly subsets?: readonly {
    readonly addresses?: readonly { readonly ip?: string }[];
    readonly ports?: readonly { readonly port?: number }[];
  }[];
}

export const endpointsCells: Cells = (object, now) => {
  const { subsets = [] } = object as Endpoints;
  const addresses = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip = '' }) => ip)
      : ports.flatMap(({ port }) => addresses.map(({ ip = '' }) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`)),
  );
  return [nameOf(object), firstThree(addresses, subsets.length === 0 ? '<none>' : ''), age(object, now)];
};

interface EndpointSlice {
  readonly addressType?: string;
  readonly ports?: readonly { readonly port?: number; readonly name?: string }[] | null;
  readonly endpoints?: readonly { readonly addresses?: readonly string[] }[] | null;
}

export const endpointSliceCells: Cells = (object, now) => {
  const { addressType = '', ports, endpoints } = object as EndpointSlice;
  const portTexts = (ports ?? []).map(({ port, name }) => String(port ?? name ?? '*'));
  const addresses = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []);
  return [
    nameOf(object),
    addressType,
    firstThree(portTexts, '<unset>'),
    firstThree(addresses, '<unset>'),
    age(object, now),
  ];
};
