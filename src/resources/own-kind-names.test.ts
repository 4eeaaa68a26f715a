import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ALL_KINDS, allBuiltinKinds, type OwnKind } from './index.ts';

/** Names that kubectl knows where an operator is installed: plurals, singulars and short names, then categories. */
interface KnownNames {
  readonly owner: string;
  readonly names: string;
  readonly categories?: string;
}

/** From the CustomResourceDefinitions of each. */
const OPERATORS: readonly KnownNames[] = [
  {
    owner: 'Kyverno',
    names: `policies policy pol clusterpolicies clusterpolicy cpol policyexceptions policyexception polex updaterequests
      ur cleanuppolicies cleanuppolicy cleanpol clustercleanuppolicies ccleanpol globalcontextentries gctxentry policyreports
      policyreport polr clusterpolicyreports cpolr ephemeralreports ephr clusterephemeralreports cephr validatingpolicies
      validatingpolicy vpol namespacedvalidatingpolicies nvpol mutatingpolicies mutatingpolicy mpol nmpol generatingpolicies
      gpol ngpol deletingpolicies dpol ndpol imagevalidatingpolicies ivpol nivpol`,
    categories: 'kyverno',
  },
  {
    owner: 'Gatekeeper',
    names: `constrainttemplates constrainttemplate configs config assign assignmetadata assignimage modifyset providers
      provider expansiontemplate mutatorpodstatuses constraintpodstatuses syncsets connections`,
    categories: 'constraint constraints gatekeeper',
  },
  {
    owner: 'Calico',
    names: `networkpolicies networkpolicy cnp caliconetworkpolicy caliconetworkpolicies globalnetworkpolicies
      globalnetworkpolicy gnp cgnp calicoglobalnetworkpolicies stagednetworkpolicies snp stagedglobalnetworkpolicies sgnp
      stagedkubernetesnetworkpolicies tiers tier ippools ippool hostendpoints hep heps networksets netsets
      globalnetworksets gns bgppeers bgpconfigurations bgpconfig felixconfigurations felixconfig profiles profile
      installations tigerastatuses`,
  },
  {
    owner: 'Cilium',
    names: `ciliumnetworkpolicies ciliumnetworkpolicy cnp ciliumnp ciliumclusterwidenetworkpolicies ccnp ciliumendpoints
      cep ciliumep ciliumidentities ciliumid ciliumnodes cn ciliumn ciliumcidrgroups ccg ciliumenvoyconfigs cec
      ciliumclusterwideenvoyconfigs ccec ciliumegressgatewaypolicies cegp ciliumlocalredirectpolicies clrp
      ciliumendpointslices ces ciliumloadbalancerippools ippools lbippool lbippools ciliumbgppeeringpolicies bgpp
      ciliuml2announcementpolicies l2announcement ciliumpodippools cpip ciliumexternalworkloads cew`,
    categories: 'cilium ciliumpolicy ciliumbgp ciliumcidr',
  },
  {
    owner: 'Antrea',
    names: 'acnp anp acg cg grp tr tf eg egress ippool annp aap tiers tier trafficcontrols externalnodes',
  },
  {
    owner: 'SIG Network',
    names: `adminnetworkpolicies adminnetworkpolicy anp baselineadminnetworkpolicies banp clusternetworkpolicies cnp
      gatewayclasses gc gateways gateway gtw httproutes grpcroutes tcproutes tlsroutes udproutes referencegrants refgrant
      backendtlspolicies btlspolicy multi-networkpolicies multi-policy net-attach-def policyendpoints`,
    categories: 'gateway-api',
  },
  {
    owner: 'cert-manager',
    names: `certificates certificate cert certs certificaterequests certificaterequest cr crs issuers issuer iss
      clusterissuers clusterissuer ciss challenges challenge orders order bundles bundle`,
    categories: 'cert-manager cert-manager-acme',
  },
  {
    owner: 'Argo',
    names: `applications application app apps appprojects appproject appproj appprojs applicationsets applicationset
      appset appsets rollouts rollout ro analysisruns ar analysistemplates at clusteranalysistemplates cat experiments exp
      workflows workflow wf workflowtemplates wftmpl clusterworkflowtemplates cwft cwftmpl cronworkflows cwf cronwf
      sensors sn eventsources es eventbus eb`,
  },
  {
    owner: 'Flux',
    names: `kustomizations kustomization ks helmreleases helmrelease hr gitrepositories gitrepository gitrepo
      helmrepositories helmrepo helmcharts hc ocirepositories ocirepo buckets bucket receivers receiver alerts alert
      providers provider imagepolicies imagepolicy imgpol imagerepositories imgrepo imageupdateautomations iua imgauto`,
  },
  {
    owner: 'Istio',
    names: `authorizationpolicies authorizationpolicy ap peerauthentications peerauthentication pa requestauthentications
      ra virtualservices virtualservice vs destinationrules dr gateways gateway gw serviceentries se sidecars sidecar
      workloadentries we workloadgroups wg envoyfilters proxyconfigs telemetries telemetry wasmplugins istiooperators iop`,
    categories: 'istio-io networking-istio-io security-istio-io telemetry-istio-io extensions-istio-io',
  },
  {
    owner: 'Knative',
    names: `services service kservice ksvc routes route rt configurations configuration config cfg revisions revision rev
      podautoscalers kpa pa serverlessservices sks images img ingresses kingress king certificates kcert domainmappings dm
      metrics brokers broker triggers trigger channels ch subscriptions sub pingsources sinkbindings apiserversources`,
    categories: 'all knative serving eventing messaging sources knative-internal networking autoscaling caching',
  },
  {
    owner: 'Prometheus operator',
    names: `prometheuses prometheus prom servicemonitors servicemonitor smon podmonitors podmonitor pmon probes probe prb
      prometheusrules prometheusrule promrule alertmanagers alertmanager am alertmanagerconfigs amcfg thanosrulers
      thanosruler ruler scrapeconfigs scfg prometheusagents promagent`,
    categories: 'prometheus-operator',
  },
  {
    owner: 'KEDA, autoscalers, Cluster API, Crossplane',
    names: `scaledobjects so scaledjobs sj triggerauthentications ta triggerauth clustertriggerauthentications cta
      clustertriggerauth verticalpodautoscalers vpa verticalpodautoscalercheckpoints vpacheckpoint nodepools nodeclaims
      clusters cluster cl machines ma machinesets ms machinedeployments md machinehealthchecks mhc mhcs machinepools mp
      clusterclasses cc compositions comp compositionrevisions comprev xrd xrds functions providerrevisions`,
    categories: 'keda cluster-api karpenter crossplane managed claim composite pkg pkgrev store',
  },
  {
    owner: 'Linkerd, Kuadrant, Traefik, Tekton, External Secrets, Velero',
    names: `servers srv serverauthorizations saz authorizationpolicies authzpolicy httproutes authpolicies ap
      ratelimitpolicies rlp dnspolicies tlspolicies ingressroutes middlewares tlsoptions pipelines pipeline pipelineruns pr
      prs tasks task taskruns tr trs externalsecrets es clusterexternalsecrets ces secretstores ss clustersecretstores css
      pushsecrets ps backups backup restores restore schedules schedule`,
    categories: 'tekton tekton-pipelines external-secrets externalsecrets',
  },
];

/**
 * Names of ours that others have, too. The paths of an API that we serve contain them, or users of either product look for the kind by
 * its name. kubectl takes the other product's object: its group comes first in the alphabet.
 */
const SHARED = new Set(['Kyverno policies', 'Kyverno policy', 'Kyverno policyexceptions', 'Kyverno policyexception']);

const words = (text = ''): readonly string[] => text.split(/\s+/).filter((word) => word !== '');

/** Words that kubectl takes for one kind. It compares in lower case. */
const namesOf = ({ kind, resource, declaration }: OwnKind): readonly string[] => [
  resource,
  kind.toLowerCase(),
  ...declaration.shortNames,
];

const BUILTIN: readonly KnownNames[] = allBuiltinKinds().map(
  ({ group, resource, singular, shortNames, categories }) => ({
    owner: `Kubernetes ${group}`,
    names: [resource, singular, ...shortNames].join(' '),
    categories: categories.join(' '),
  }),
);

describe('names of our kinds', () => {
  const ours = ALL_KINDS.flatMap(namesOf);
  const categories = new Set(ALL_KINDS.flatMap(({ declaration }) => declaration.categories));

  it('are those of no kind of Kubernetes or of a common operator', () => {
    const known = [...BUILTIN, ...OPERATORS].flatMap(({ owner, names }) => words(names).map((name) => [owner, name]));
    const taken = known.filter(([, name = '']) => ours.includes(name)).map((entry) => entry.join(' '));
    assert.deepEqual(taken.filter((entry) => !SHARED.has(entry)).toSorted(), []);
  });

  it('are no categories, and the reverse: kubectl looks for a category first, and says nothing', () => {
    const foreign = [...BUILTIN, ...OPERATORS].flatMap(({ owner, names, categories: theirs }) => [
      ...words(names)
        .filter((name) => categories.has(name))
        .map((name) => `our category ${name} is a name of ${owner}`),
      ...words(theirs)
        .filter((name) => ours.includes(name))
        .map((name) => `our name ${name} is a category of ${owner}`),
      ...words(theirs)
        .filter((name) => categories.has(name))
        .map((name) => `${owner} has our category ${name}`),
    ]);
    assert.deepEqual(foreign, []);
    assert.deepEqual(
      [...categories].filter((name) => ours.includes(name)),
      [],
    );
  });

  it('differ from each other', () => {
    assert.deepEqual(
      ours.filter((name, index) => ours.indexOf(name) !== index),
      [],
    );
  });
});
