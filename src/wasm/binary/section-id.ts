/** Ids of the sections of a module. */
export const SectionId = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
  tag: 13,
} as const;

/** The ids in the order that a module has its sections in; those of sections that the sandbox refuses are not among them. */
export const SECTION_ORDER: readonly number[] = [
  SectionId.type,
  SectionId.import,
  SectionId.function,
  SectionId.table,
  SectionId.memory,
  SectionId.global,
  SectionId.export,
  SectionId.element,
  SectionId.dataCount,
  SectionId.code,
  SectionId.data,
];
