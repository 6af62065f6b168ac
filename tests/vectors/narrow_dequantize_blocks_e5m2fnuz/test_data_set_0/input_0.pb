BxJ<¶• ÐaÒ‡_c˜‹¾rGcËRé9G¡uÆ¢?
*Npþq)ÃãÓQ#ºWËzyèáŒø_ãtÕºÏ½bvÿ