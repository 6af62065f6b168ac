"""The architectures of bench/zoo.py: (library, name, input shape), batch 1, seeded weights."""
TORCHVISION = """alexnet densenet121 googlenet inception_v3:299 mnasnet1_0 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large
regnet_x_400mf regnet_y_400mf regnet_y_1_6gf resnet18 resnet34 resnet50 resnext50_32x4d wide_resnet50_2 shufflenet_v2_x1_0
squeezenet1_0 squeezenet1_1 vgg11 vgg16_bn efficientnet_b0 efficientnet_v2_s convnext_tiny vit_b_32 swin_t""".split()
SEGMENTATION = "lraspp_mobilenet_v3_large deeplabv3_mobilenet_v3_large fcn_resnet50".split()
VIDEO = "r3d_18 mc3_18 r2plus1d_18".split()
TIMM = """
repvgg_a0 repvgg_b0 mobileone_s0 mobileone_s2 convnext_atto convnext_femto convnext_pico convnextv2_atto
efficientnet_lite0 tf_efficientnetv2_b0 mixnet_s mobilenetv4_conv_small mobilenetv4_conv_medium
mobilenetv4_hybrid_medium fbnetc_100 fbnetv3_b mnasnet_small lcnet_050 lcnet_100 tinynet_a ghostnet_100
ghostnetv2_100 hardcorenas_a hgnetv2_b0 hgnet_tiny dla34 dla46x_c cspdarknet53 cspresnet50 resnet26d
seresnet50 skresnet18 ecaresnet26t resnest14d res2net50_26w_4s resnetv2_50 gernet_s botnet26t_256:256
regnetx_002 regnetz_b16 rexnet_100 selecsls42b semnasnet_075 spnasnet_100 ese_vovnet19b_dw
xcit_nano_12_p16_224 vit_tiny_patch16_224 vit_small_patch32_224 deit_tiny_patch16_224 tiny_vit_5m_224
mobilevit_xxs:256 mobilevit_s:256 mobilevitv2_050:256 efficientformer_l1 efficientformerv2_s0 efficientvit_b0
efficientvit_m0 edgenext_xx_small:256 fastvit_t8:256 levit_128s poolformer_s12 pvt_v2_b0 coat_lite_tiny
mixer_s32_224 resmlp_12_224 pit_ti_224 cait_xxs24_224 coatnet_nano_rw_224 inception_next_atto repghostnet_100
repvit_m0_9 starnet_s1 hrnet_w18_small visformer_tiny eca_nfnet_l0 focalnet_tiny_srf mambaout_femto
swiftformer_xs shvit_s1 caformer_s18 xception41 cs3darknet_s
""".split()
# The optimising exporter (torch.export) for every second one, the tracing one for the others: both are met in the field.


def zoo():
    for library, names in (("torchvision", TORCHVISION), ("segmentation", SEGMENTATION), ("video", VIDEO), ("timm", TIMM)):
        for at, word in enumerate(names):
            name, _, size = word.partition(":")
            side = int(size or 224)
            shape = (1, 3, 8, 112, 112) if library == "video" else (1, 3, side, side)
            yield library, name, shape, "export" if at % 2 else "trace"
