// Service code `sagemaker`; codes are the same in every region, which
// rows exist differs. Source: gruntwork-io/terraform-aws-utilities@55f0c2d modules/request-quota-increase/variables.tf
// (us-east-1, 2026-01-14), cross-checked with three regions. Retrieved 2026-11-20.
// Only codes from that list are included; a quota of a missing type is looked up by name at run time.

/** Usage kind of a SageMaker instance quota; each kind has a separate quota per type. */
export type QuotaUsage = 'training' | 'spot' | 'warm-pool' | 'processing';

/** Quota codes by instance type and usage. */
export const INSTANCE_QUOTA_CODES: Readonly<Record<string, Partial<Record<QuotaUsage, string>>>> = {
  'ml.c4.2xlarge': { training: 'L-C5B4EE09', spot: 'L-978CD7EC', 'warm-pool': 'L-72EF9D60' },
  'ml.c4.4xlarge': { training: 'L-505634D0', spot: 'L-C087612A', 'warm-pool': 'L-FBB7E9CB' },
  'ml.c4.8xlarge': { training: 'L-6BE85179', spot: 'L-C5B2C408', 'warm-pool': 'L-8B308035' },
  'ml.c4.xlarge': { training: 'L-85D4BAF3', spot: 'L-9BA5373F', 'warm-pool': 'L-1DA286AA' },
  'ml.c5.18xlarge': { training: 'L-81482A8C', spot: 'L-239B242B', 'warm-pool': 'L-C8044861', processing: 'L-2D8CD70A' },
  'ml.c5.2xlarge': { training: 'L-49679826', spot: 'L-4581C083', 'warm-pool': 'L-0D58D77C', processing: 'L-C1EBA9C5' },
  'ml.c5.4xlarge': { training: 'L-E7898792', spot: 'L-36C5FA8E', 'warm-pool': 'L-7BDD9EA3', processing: 'L-EFB2F063' },
  'ml.c5.9xlarge': { training: 'L-2BE095E2', spot: 'L-A2512F8F', 'warm-pool': 'L-ABFCF5A2', processing: 'L-945D1F1D' },
  'ml.c5.xlarge': { training: 'L-E2BB44FE', spot: 'L-6FA0D387', 'warm-pool': 'L-F978BE20', processing: 'L-486519E6' },
  'ml.c5n.18xlarge': { training: 'L-A1E21094', spot: 'L-266C4F52', 'warm-pool': 'L-566A905C' },
  'ml.c5n.2xlarge': { training: 'L-D04B88E2', spot: 'L-C1E6B202', 'warm-pool': 'L-2952557B' },
  'ml.c5n.4xlarge': { training: 'L-E215EF33', spot: 'L-37059D02', 'warm-pool': 'L-4A423436' },
  'ml.c5n.9xlarge': { training: 'L-D0327E29', spot: 'L-D144443B', 'warm-pool': 'L-FDD19E2A' },
  'ml.c5n.xlarge': { training: 'L-04CD765C', spot: 'L-DD508305', 'warm-pool': 'L-8A72B806' },
  'ml.c6i.12xlarge': { training: 'L-81AF96F3', spot: 'L-DD42D93D', 'warm-pool': 'L-51467CBD' },
  'ml.c6i.16xlarge': { training: 'L-090C5671', spot: 'L-0C0D9F82', 'warm-pool': 'L-5D454ED8' },
  'ml.c6i.24xlarge': { training: 'L-DE22CE7F', spot: 'L-1B7024B2', 'warm-pool': 'L-CF4F44AD' },
  'ml.c6i.2xlarge': { training: 'L-536D2DD2', spot: 'L-8BB74069', 'warm-pool': 'L-C1971434' },
  'ml.c6i.32xlarge': { training: 'L-D8FA228C', spot: 'L-B9D177E1', 'warm-pool': 'L-7B64C2AB' },
  'ml.c6i.4xlarge': { training: 'L-4A20E33E', spot: 'L-017831D5', 'warm-pool': 'L-2B1E88AF' },
  'ml.c6i.8xlarge': { training: 'L-845DE61C', spot: 'L-6DA79B36', 'warm-pool': 'L-F361CE98' },
  'ml.c6i.xlarge': { training: 'L-D526E050', spot: 'L-6074B0D4', 'warm-pool': 'L-75B2C685' },
  'ml.c7i.12xlarge': { training: 'L-B6A274A9', spot: 'L-B83BF0BE', 'warm-pool': 'L-395315DA' },
  'ml.c7i.16xlarge': { training: 'L-4EE1482A', spot: 'L-80BD5FD2', 'warm-pool': 'L-F9989D2B' },
  'ml.c7i.24xlarge': { training: 'L-4AEBC16B', spot: 'L-9FE5CC2D', 'warm-pool': 'L-D25FCBA1' },
  'ml.c7i.2xlarge': { training: 'L-83A50567', spot: 'L-320DF9E1', 'warm-pool': 'L-3A1C8CE1' },
  'ml.c7i.48xlarge': { training: 'L-01589929', spot: 'L-76243C5D', 'warm-pool': 'L-62BEAF82' },
  'ml.c7i.4xlarge': { training: 'L-1EC4D7FD', spot: 'L-608EFB1F', 'warm-pool': 'L-D463F25C' },
  'ml.c7i.8xlarge': { training: 'L-73081A3A', spot: 'L-9849A15E', 'warm-pool': 'L-57A53C2D' },
  'ml.c7i.large': { training: 'L-3FD3F6D0', spot: 'L-6C44F58D', 'warm-pool': 'L-570B0415' },
  'ml.c7i.xlarge': { training: 'L-194981EA', spot: 'L-9723DD27', 'warm-pool': 'L-25B13CE9' },
  'ml.g4dn.12xlarge': {
    training: 'L-7BD2C9FA',
    spot: 'L-199558F0',
    'warm-pool': 'L-CB4A3655',
    processing: 'L-6C7C4F4E',
  },
  'ml.g4dn.16xlarge': {
    training: 'L-57998C77',
    spot: 'L-AD4C1352',
    'warm-pool': 'L-C960C80D',
    processing: 'L-47F095C9',
  },
  'ml.g4dn.2xlarge': {
    training: 'L-C2495BC4',
    spot: 'L-0496610F',
    'warm-pool': 'L-C35F807B',
    processing: 'L-41C11899',
  },
  'ml.g4dn.4xlarge': {
    training: 'L-2908B1E9',
    spot: 'L-246C5638',
    'warm-pool': 'L-3408A20D',
    processing: 'L-B1C4D018',
  },
  'ml.g4dn.8xlarge': {
    training: 'L-3118B7E1',
    spot: 'L-15F329FB',
    'warm-pool': 'L-769E114F',
    processing: 'L-9C72BEE2',
  },
  'ml.g4dn.xlarge': { training: 'L-3F53BF0F', spot: 'L-944F78BB', 'warm-pool': 'L-955074FD', processing: 'L-2F1EB012' },
  'ml.g5.12xlarge': { training: 'L-C6383286', spot: 'L-03E19172', 'warm-pool': 'L-29508C65', processing: 'L-B013C051' },
  'ml.g5.16xlarge': { training: 'L-9FAC65F7', spot: 'L-E3DCB664', 'warm-pool': 'L-F6B8A3A3', processing: 'L-AC014CFB' },
  'ml.g5.24xlarge': { training: 'L-ED7BD217', spot: 'L-8345B953', 'warm-pool': 'L-6F46EF71', processing: 'L-BC6B3288' },
  'ml.g5.2xlarge': { training: 'L-2D6DEB3C', spot: 'L-CAEE7DB7', 'warm-pool': 'L-822C5A39', processing: 'L-23412DF7' },
  'ml.g5.48xlarge': { training: 'L-6BC98A55', spot: 'L-C87FF004', 'warm-pool': 'L-7D217E5D', processing: 'L-339123BF' },
  'ml.g5.4xlarge': { training: 'L-FE869B40', spot: 'L-DB4D51CF', 'warm-pool': 'L-88E48241', processing: 'L-0A6E4205' },
  'ml.g5.8xlarge': { training: 'L-43F5FC95', spot: 'L-DD18D5D6', 'warm-pool': 'L-40E8018C', processing: 'L-B9080C32' },
  'ml.g5.xlarge': { training: 'L-B6D80D9C', spot: 'L-DE07CBDF', 'warm-pool': 'L-8E6F4665', processing: 'L-BE792A7A' },
  'ml.g6.12xlarge': { training: 'L-50B5B169', spot: 'L-2C06E55A', 'warm-pool': 'L-954CE822' },
  'ml.g6.16xlarge': { training: 'L-C8B8462D', spot: 'L-8D196E75', 'warm-pool': 'L-73EC964F' },
  'ml.g6.24xlarge': { training: 'L-B0E221DE', spot: 'L-148FBB89', 'warm-pool': 'L-1DDB8D50' },
  'ml.g6.2xlarge': { training: 'L-A1025C0C', spot: 'L-BC684567', 'warm-pool': 'L-8F92321F' },
  'ml.g6.48xlarge': { training: 'L-8CCF67BD', spot: 'L-9C33052B', 'warm-pool': 'L-FD73C65F' },
  'ml.g6.4xlarge': { training: 'L-07B51BA0', spot: 'L-03304C28', 'warm-pool': 'L-BA5B2FC5' },
  'ml.g6.8xlarge': { training: 'L-FB830EC3', spot: 'L-CDC3B509', 'warm-pool': 'L-DBF210E3' },
  'ml.g6.xlarge': { training: 'L-56AE9D73', spot: 'L-A886A53A', 'warm-pool': 'L-99881E10' },
  'ml.g6e.12xlarge': { training: 'L-F70A2467', spot: 'L-C1031CE4', 'warm-pool': 'L-F88734E1' },
  'ml.g6e.16xlarge': { training: 'L-68515813', spot: 'L-5E942007', 'warm-pool': 'L-C1AEC017' },
  'ml.g6e.24xlarge': { training: 'L-3AE4911A', spot: 'L-CE130130', 'warm-pool': 'L-2C0E8383' },
  'ml.g6e.2xlarge': { training: 'L-D1AFBF6F', spot: 'L-29512C0F', 'warm-pool': 'L-2E2B5B49' },
  'ml.g6e.48xlarge': { training: 'L-0DA2E7B0', spot: 'L-8497E1A4', 'warm-pool': 'L-2AD5EFDD' },
  'ml.g6e.4xlarge': { training: 'L-945D83D8', spot: 'L-5E2EB366', 'warm-pool': 'L-B257AB01' },
  'ml.g6e.8xlarge': { training: 'L-812CA1D8', spot: 'L-2E243138', 'warm-pool': 'L-72017957' },
  'ml.g6e.xlarge': { training: 'L-1E3225F6', spot: 'L-1DE24427', 'warm-pool': 'L-BEAEADC8' },
  'ml.m4.10xlarge': { training: 'L-D35E48B2', spot: 'L-C17B05C4', 'warm-pool': 'L-1BF9151C' },
  'ml.m4.16xlarge': { training: 'L-D7CE983F', spot: 'L-A50827DD', 'warm-pool': 'L-F4F08D88' },
  'ml.m4.2xlarge': { training: 'L-D589112D', spot: 'L-FE159C34', 'warm-pool': 'L-E312D77E' },
  'ml.m4.4xlarge': { training: 'L-E60A61DF', spot: 'L-D7D166A0', 'warm-pool': 'L-CF81ED81' },
  'ml.m4.xlarge': { training: 'L-A373146E', spot: 'L-2ECAA15F', 'warm-pool': 'L-AFEEB9EB' },
  'ml.m5.12xlarge': { training: 'L-6F6C8949', spot: 'L-29B03627', 'warm-pool': 'L-34594662', processing: 'L-BC1C7D38' },
  'ml.m5.24xlarge': { training: 'L-56C564CA', spot: 'L-D0EA3DC8', 'warm-pool': 'L-B21D8B36', processing: 'L-E2E903C6' },
  'ml.m5.2xlarge': { training: 'L-AD0A282D', spot: 'L-4A823FAB', 'warm-pool': 'L-1686EE8B', processing: 'L-1D84B9D2' },
  'ml.m5.4xlarge': { training: 'L-AFB011B4', spot: 'L-2A6ACFF7', 'warm-pool': 'L-03767DF9', processing: 'L-379E85A3' },
  'ml.m5.large': { training: 'L-611FA074', spot: 'L-29688C85', 'warm-pool': 'L-2DD73636', processing: 'L-8541302D' },
  'ml.m5.xlarge': { training: 'L-CCE2AFA6', spot: 'L-4CEE6BA6', 'warm-pool': 'L-0BEF44E8', processing: 'L-0307F515' },
  'ml.m6i.12xlarge': {
    training: 'L-8716E6AE',
    spot: 'L-EF089D40',
    'warm-pool': 'L-4FC79063',
    processing: 'L-46EB709C',
  },
  'ml.m6i.16xlarge': {
    training: 'L-7412F8CF',
    spot: 'L-614CBE09',
    'warm-pool': 'L-8C9D5748',
    processing: 'L-B0A4992C',
  },
  'ml.m6i.24xlarge': {
    training: 'L-9778E614',
    spot: 'L-24B0ADC0',
    'warm-pool': 'L-2C080D31',
    processing: 'L-9639CC81',
  },
  'ml.m6i.2xlarge': { training: 'L-AE3447AD', spot: 'L-39DC8B41', 'warm-pool': 'L-D1BB9472', processing: 'L-69C6935E' },
  'ml.m6i.32xlarge': {
    training: 'L-6F01766F',
    spot: 'L-843BE5AB',
    'warm-pool': 'L-699A2417',
    processing: 'L-E863DCD3',
  },
  'ml.m6i.4xlarge': { training: 'L-AE93C70E', spot: 'L-59C3957D', 'warm-pool': 'L-F1B1085A', processing: 'L-5064185C' },
  'ml.m6i.8xlarge': { training: 'L-964887D9', spot: 'L-7B628106', 'warm-pool': 'L-52A56414', processing: 'L-A62BA7D5' },
  'ml.m6i.large': { training: 'L-514B50A3', spot: 'L-7E503C5F', 'warm-pool': 'L-9D578B5E', processing: 'L-D9F69758' },
  'ml.m6i.xlarge': { training: 'L-3A218EBD', spot: 'L-3597CD5B', 'warm-pool': 'L-CD3B6B80', processing: 'L-4530EDEE' },
  'ml.m7i.12xlarge': {
    training: 'L-203824E2',
    spot: 'L-402598A2',
    'warm-pool': 'L-DB00E0E3',
    processing: 'L-67BEA0AE',
  },
  'ml.m7i.16xlarge': {
    training: 'L-23FC2F6E',
    spot: 'L-61116077',
    'warm-pool': 'L-74C31E8C',
    processing: 'L-21FC2F36',
  },
  'ml.m7i.24xlarge': {
    training: 'L-835D2208',
    spot: 'L-FC6B95EF',
    'warm-pool': 'L-76AF5271',
    processing: 'L-41D07CEF',
  },
  'ml.m7i.2xlarge': { training: 'L-940A662A', spot: 'L-0AC766BA', 'warm-pool': 'L-E3970643', processing: 'L-71EA14AB' },
  'ml.m7i.48xlarge': {
    training: 'L-CB4B91F3',
    spot: 'L-89F2FD35',
    'warm-pool': 'L-6C6CBBDE',
    processing: 'L-08F1F3D8',
  },
  'ml.m7i.4xlarge': { training: 'L-06106111', spot: 'L-85573624', 'warm-pool': 'L-6CE24819', processing: 'L-079EEF64' },
  'ml.m7i.8xlarge': { training: 'L-80324B66', spot: 'L-34866D05', 'warm-pool': 'L-EB03CD8A', processing: 'L-EFCA02A2' },
  'ml.m7i.large': { training: 'L-C5747110', spot: 'L-CDFDF9FD', 'warm-pool': 'L-86CB710A', processing: 'L-659C9942' },
  'ml.m7i.xlarge': { training: 'L-E84ADEB3', spot: 'L-0C545830', 'warm-pool': 'L-6FCDFC95', processing: 'L-7E675D8C' },
  'ml.p3.16xlarge': { training: 'L-A99E0304', spot: 'L-D58A90BB', 'warm-pool': 'L-763CF8E3' },
  'ml.p3.2xlarge': { training: 'L-D438008E', spot: 'L-2D4C6493', 'warm-pool': 'L-E3709F6E' },
  'ml.p3.8xlarge': { training: 'L-558F1246', spot: 'L-0201B959', 'warm-pool': 'L-5CA5BEE6' },
  'ml.p3dn.24xlarge': { training: 'L-8DCA2E97', spot: 'L-477D3300', 'warm-pool': 'L-D27958C4' },
  'ml.p4d.24xlarge': { training: 'L-09B4A649', spot: 'L-09D56C4F', 'warm-pool': 'L-A8827666' },
  'ml.p4de.24xlarge': { training: 'L-D948A761', spot: 'L-CE8E42E7', 'warm-pool': 'L-A24FA80D' },
  'ml.p5.48xlarge': { training: 'L-82E1C851', spot: 'L-82733FAD', 'warm-pool': 'L-5D321F81' },
  'ml.p5.4xlarge': { training: 'L-C2764A80', spot: 'L-42C5B178', 'warm-pool': 'L-E511AAB3' },
  'ml.p5e.48xlarge': { training: 'L-F573984A', spot: 'L-8051418F', 'warm-pool': 'L-B861EF4F' },
  'ml.p5en.48xlarge': { training: 'L-1E48384D', spot: 'L-16486321', 'warm-pool': 'L-28BE5719' },
  'ml.p6-b200.48xlarge': { training: 'L-60EA3D74', spot: 'L-08AE20C2', 'warm-pool': 'L-AC01B100' },
  'ml.r5.12xlarge': { training: 'L-B307949A', spot: 'L-300538CF', 'warm-pool': 'L-E1ACD1F8', processing: 'L-20546400' },
  'ml.r5.16xlarge': { training: 'L-45DB9C66', spot: 'L-53570353', 'warm-pool': 'L-528EF552', processing: 'L-06A1E8BB' },
  'ml.r5.24xlarge': { training: 'L-03C8E8AF', spot: 'L-4BAB566C', 'warm-pool': 'L-2F9D520B', processing: 'L-A28AF48F' },
  'ml.r5.2xlarge': { training: 'L-D4EE434E', spot: 'L-558B6165', 'warm-pool': 'L-9F536CF3', processing: 'L-F0132B48' },
  'ml.r5.4xlarge': { training: 'L-B7AE5453', spot: 'L-299FAE98', 'warm-pool': 'L-E2BDBB46', processing: 'L-E4F6EF77' },
  'ml.r5.8xlarge': { training: 'L-901586D2', spot: 'L-F1ABFE8A', 'warm-pool': 'L-74B46909', processing: 'L-154D0022' },
  'ml.r5.large': { training: 'L-A810B462', spot: 'L-7AB35940', 'warm-pool': 'L-4A319ECB', processing: 'L-43562353' },
  'ml.r5.xlarge': { training: 'L-E854D418', spot: 'L-C57B8181', 'warm-pool': 'L-F9042956', processing: 'L-B2D8E643' },
  'ml.r5d.12xlarge': { training: 'L-718F98E5', spot: 'L-F81A365E', 'warm-pool': 'L-8CC2A52D' },
  'ml.r5d.16xlarge': { training: 'L-4CC2593C', spot: 'L-70A53B0D', 'warm-pool': 'L-67E7209D' },
  'ml.r5d.24xlarge': { training: 'L-EAA40023', spot: 'L-8F6952F2', 'warm-pool': 'L-B54F7F84' },
  'ml.r5d.2xlarge': { training: 'L-22E1BC00', spot: 'L-3870264F', 'warm-pool': 'L-7036F14A' },
  'ml.r5d.4xlarge': { training: 'L-57D137CF', spot: 'L-7C5EE730', 'warm-pool': 'L-899D2891' },
  'ml.r5d.8xlarge': { training: 'L-BD05AE89', spot: 'L-86845C1F', 'warm-pool': 'L-524FDA45' },
  'ml.r5d.large': { training: 'L-F41659C8', spot: 'L-744ED636', 'warm-pool': 'L-5B66C272' },
  'ml.r5d.xlarge': { training: 'L-FA13E20B', spot: 'L-0544E72F', 'warm-pool': 'L-5C31AAE1' },
  'ml.r7i.12xlarge': { training: 'L-E31E799C', spot: 'L-589D9467', 'warm-pool': 'L-7882E313' },
  'ml.r7i.16xlarge': { training: 'L-3E534129', spot: 'L-F62D1B89', 'warm-pool': 'L-82FF331C' },
  'ml.r7i.24xlarge': { training: 'L-DE40B39E', spot: 'L-8510FD88', 'warm-pool': 'L-F0D9539F' },
  'ml.r7i.2xlarge': { training: 'L-06AB0AAC', spot: 'L-25EC3C78', 'warm-pool': 'L-23426920' },
  'ml.r7i.48xlarge': { training: 'L-F5012757', spot: 'L-260E95A6', 'warm-pool': 'L-64D52F6C' },
  'ml.r7i.4xlarge': { training: 'L-0665041B', spot: 'L-326E6232', 'warm-pool': 'L-6FA7C073' },
  'ml.r7i.8xlarge': { training: 'L-FFABC174', spot: 'L-0B434972', 'warm-pool': 'L-BCBB517D' },
  'ml.r7i.large': { training: 'L-732722E0', spot: 'L-E4156D7D', 'warm-pool': 'L-2F20345E' },
  'ml.r7i.xlarge': { training: 'L-B6A6325E', spot: 'L-F7D04A63', 'warm-pool': 'L-31F66640' },
  'ml.t3.2xlarge': { training: 'L-57AC4E19', spot: 'L-39AB5000', 'warm-pool': 'L-40D07D7F', processing: 'L-1E2072C0' },
  'ml.t3.large': { training: 'L-B95AAE44', spot: 'L-4C7F99A0', 'warm-pool': 'L-B7A07BB4', processing: 'L-C076FA77' },
  'ml.t3.medium': { processing: 'L-0CE343FE' },
  'ml.t3.xlarge': { training: 'L-823DAB46', spot: 'L-8CD1FE93', 'warm-pool': 'L-5F747AE6', processing: 'L-DABA7ED5' },
  'ml.trn1.2xlarge': { training: 'L-74F2FC79', spot: 'L-AA22B8B9', 'warm-pool': 'L-AA6A4B7A' },
  'ml.trn1.32xlarge': { training: 'L-79A1FE57', spot: 'L-F594DE31', 'warm-pool': 'L-36F422F7' },
  'ml.trn1n.32xlarge': { training: 'L-BFB9CF17', spot: 'L-068DB6B3', 'warm-pool': 'L-9037D736' },
};

/** Quotas that do not depend on an instance type; `default` is AWS's default, not an account's limit. */
export const GENERAL_QUOTAS: Readonly<Record<string, { name: string; default?: number; unit?: string }>> = {
  'L-33A961FD': { name: 'Longest run time for a training job', default: 432000, unit: 'seconds' },
  'L-00C91CB5': { name: 'Number of instances across all training jobs', default: 4, unit: 'instances' },
  'L-93958082': { name: 'Number of instances across all spot training jobs', default: 4, unit: 'instances' },
  'L-622CFD70': { name: 'Maximum number of instances per training job', default: 20, unit: 'instances' },
  'L-DB62C864': { name: 'Maximum number of instances per spot training job', default: 20, unit: 'instances' },
  'L-C5A266EB': { name: 'Size of EBS volume for a training job instance', default: 1024, unit: 'GB' },
  'L-867702E6': { name: 'Number of training plans per Region', unit: 'plans' },
  'L-F311B08F': { name: 'Number of instances across all processing jobs', default: 4, unit: 'instances' },
  'L-A5D63399': { name: 'Maximum number of instances per processing job', unit: 'instances' },
  'L-EA47BDD3': { name: 'Longest run time for a processing job', unit: 'seconds' },
  'L-D7BEE2A3': { name: 'Size of EBS volume for a processing job instance', unit: 'GB' },
  'L-52DB9D33': {
    name: 'Maximum number of training jobs that each hyperparameter tuning job with Random search strategy can create',
    unit: 'jobs',
  },
};

/** A SageMaker quota by name, and by code if AWS publishes it. */
export interface QuotaRef {
  /** Service Quotas code; if absent, look up `name` at run time. */
  code?: string;
  /** QuotaName, as in Service Quotas and in ResourceLimitExceeded messages. */
  name: string;
}

/** Codes of quotas that do not depend on an instance type. Source: quota-codes.ts. */
export const QUOTA = {
  longestRunSeconds: 'L-33A961FD',
  instancesAcrossTraining: 'L-00C91CB5',
  instancesAcrossSpot: 'L-93958082',
  instancesPerTraining: 'L-622CFD70',
  instancesPerSpot: 'L-DB62C864',
  ebsVolumeGiB: 'L-C5A266EB',
  instancesAcrossProcessing: 'L-F311B08F',
  trainingPlans: 'L-867702E6',
} as const;

const NAME_OF_USAGE: Readonly<Record<QuotaUsage, string>> = {
  training: 'training job usage',
  spot: 'spot training job usage',
  'warm-pool': 'training warm pool usage',
  processing: 'processing job usage',
};

/** The quota of `instanceType` for one usage kind. */
export function instanceQuota(instanceType: string, usage: QuotaUsage): QuotaRef {
  return {
    code: INSTANCE_QUOTA_CODES[instanceType]?.[usage],
    name: `${instanceType} for ${NAME_OF_USAGE[usage]}`,
  };
}

/** A quota that does not depend on an instance type. */
export function generalQuota(code: string): QuotaRef {
  return { code, name: GENERAL_QUOTAS[code]?.name ?? code };
}
