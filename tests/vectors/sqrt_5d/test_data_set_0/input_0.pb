BxJð°†AÍÿ‘@[¯
ASÊÍAIxžA»I3@‰åASuÊAbè@ÍµVAZéŠ?•J0@ÓñÒ=ÒùAB
yB{¥'AfB–@B2IêAÎó¿A9BŽÒAÞ@B:ò¡AÌAÚ>Bç£@ED AèAÄV$A·†7B2º)B›¸À@0±çAN EAI†ûA.BA/5A@¾@·—1B¼_Aí{4B#._AøVÅAQÐBÁÎ@Xd×AŸØ…AÝR•@ž³
AàyßA´¥žA%»ÜA{;kAåF)BÈX£AaçA¥B^mAœ&Av…AB